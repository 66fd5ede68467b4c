//! Reading fields out of JSON values, leniently where clients are careless and with a place in every error.
//!
//! Requests are read through `serde_json::Value` instead of derived structs, because an error should name the
//! field by its path, and because several fields come in more than one shape.

use serde_json::{Map, Value};

use crate::ChatError;

/// Levels of nesting accepted in arguments and schemas: what `serde_json` reads from text. Values built in
/// memory can be deeper, and recursion over them must end before the stack does.
pub(crate) const DEPTH_LIMIT: usize = 128;

/// An object being read, and where it is in the request.
pub(crate) struct Fields {
    at: String,
    map: Map<String, Value>,
}

impl Fields {
    pub(crate) fn new(value: Value, at: &str) -> Result<Self, ChatError> {
        match value {
            Value::Object(map) => Ok(Self { at: at.to_owned(), map }),
            other => Err(wrong_type(at, &other, "an object")),
        }
    }

    /// The path of a field of this object.
    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}.{name}", self.at)
    }

    /// Takes a field out. Missing and `null` are the same thing.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.map.get_mut(name).map(Value::take).filter(|value| !value.is_null())
    }

    /// A string that may be missing. Clients send empty strings for "none", so they count as missing.
    pub(crate) fn string(&mut self, name: &str) -> Result<Option<String>, ChatError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
            Some(other) => Err(wrong_type(&self.path(name), &other, "a string")),
        }
    }

    /// A string that must be there, even if empty.
    pub(crate) fn required_string(&mut self, name: &str) -> Result<String, ChatError> {
        match self.take(name) {
            None => Err(ChatError::MissingField { at: self.path(name) }),
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(wrong_type(&self.path(name), &other, "a string")),
        }
    }

    /// An object that must be there.
    pub(crate) fn required_object(&mut self, name: &str) -> Result<Fields, ChatError> {
        let at = self.path(name);
        match self.take(name) {
            None => Err(ChatError::MissingField { at }),
            Some(value) => Fields::new(value, &at),
        }
    }

    /// A list that may be missing, each element read by `read` with its own path.
    pub(crate) fn list<T>(
        &mut self,
        name: &str,
        read: impl FnMut(Value, &str) -> Result<T, ChatError>,
    ) -> Result<Vec<T>, ChatError> {
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(value) => list(value, &self.path(name), read),
        }
    }
}

/// Reads every element of a list, each with its own path.
pub(crate) fn list<T>(
    value: Value,
    at: &str,
    mut read: impl FnMut(Value, &str) -> Result<T, ChatError>,
) -> Result<Vec<T>, ChatError> {
    match value {
        Value::Array(values) => {
            values.into_iter().enumerate().map(|(i, value)| read(value, &format!("{at}[{i}]"))).collect()
        }
        other => Err(wrong_type(at, &other, "a list")),
    }
}

/// Parses JSON text found at `at`.
pub(crate) fn parse(text: &str, at: &str) -> Result<Value, ChatError> {
    serde_json::from_str(text)
        .map_err(|error| ChatError::InvalidJson { at: at.to_owned(), reason: error.to_string() })
}

pub(crate) fn wrong_type(at: &str, found: &Value, expected: &'static str) -> ChatError {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    ChatError::WrongType { at: at.to_owned(), found, expected }
}

/// Fails if any of `values` is nested more deeply than [`DEPTH_LIMIT`]. Does not recurse itself.
pub(crate) fn check_depth<'a>(
    values: impl IntoIterator<Item = &'a Value>,
    what: impl FnOnce() -> String,
) -> Result<(), ChatError> {
    let mut open: Vec<(&Value, usize)> = values.into_iter().map(|value| (value, 1)).collect();
    while let Some((value, depth)) = open.pop() {
        let inside = depth + 1;
        match value {
            Value::Array(_) | Value::Object(_) if depth > DEPTH_LIMIT => {
                return Err(ChatError::TooDeep { what: what(), limit: DEPTH_LIMIT });
            }
            Value::Array(values) => open.extend(values.iter().map(|value| (value, inside))),
            Value::Object(map) => open.extend(map.values().map(|value| (value, inside))),
            _ => {}
        }
    }
    Ok(())
}
