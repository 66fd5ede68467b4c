//! Tools a model may call, and calls of them, in the shape of Ollama's `/api/chat`.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::{
    ChatError,
    json::{self, Fields, wrong_type},
};

/// A tool offered to the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tool {
    /// What kind of tool it is. Only `function` exists.
    #[serde(rename = "type")]
    pub kind: String,
    /// The function to call.
    pub function: ToolFunction,
}

/// The function behind a tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolFunction {
    /// What calls name it by.
    pub name: String,
    /// What it does, in words for the model.
    pub description: String,
    /// The JSON schema of its arguments; `null` if it has none.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub parameters: Value,
}

impl Tool {
    /// A function with a JSON schema for its arguments.
    #[must_use]
    pub fn function(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self {
            kind: "function".to_owned(),
            function: ToolFunction { name: name.into(), description: description.into(), parameters },
        }
    }

    /// Reads a tool from a JSON value.
    ///
    /// # Errors
    ///
    /// When the function or its name is missing, or a field holds the wrong kind of value. Inside the
    /// schema, what cannot be understood is left out of the declaration instead.
    pub fn from_value(value: Value) -> Result<Self, ChatError> {
        Self::read(value, "tool")
    }

    fn read(value: Value, at: &str) -> Result<Self, ChatError> {
        let mut fields = Fields::new(value, at)?;
        let mut function = fields.required_object("function")?;
        let parameters = match function.take("parameters") {
            None => Value::Null,
            Some(schema @ Value::Object(_)) => schema,
            Some(other) => return Err(wrong_type(&function.path("parameters"), &other, "an object")),
        };
        Ok(Self {
            kind: fields.string("type")?.unwrap_or_else(|| "function".to_owned()),
            function: ToolFunction {
                name: function.required_string("name")?,
                description: function.string("description")?.unwrap_or_default(),
                parameters,
            },
        })
    }
}

impl<'de> Deserialize<'de> for Tool {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// Reads the `tools` of a request from JSON text. `null` is an empty list.
///
/// # Errors
///
/// When the text is not JSON, not a list, or a tool in it cannot be read.
pub fn parse_tools(text: &str) -> Result<Vec<Tool>, ChatError> {
    match json::parse(text, "tools")? {
        Value::Null => Ok(Vec::new()),
        value => json::list(value, "tools", Tool::read),
    }
}

/// A call of a tool by the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolCall {
    /// Names the call, so that the tool's answer can refer to it. Whoever sends a reply to a client gives
    /// it; the model does not write one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The function called.
    pub function: FunctionCall,
}

/// The function of a call, and what it is called with.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionCall {
    /// The place of the call among those of one reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// The function's name.
    pub name: String,
    /// Its arguments by name.
    pub arguments: Map<String, Value>,
}

impl ToolCall {
    /// A call of the function `name`.
    #[must_use]
    pub fn new(name: impl Into<String>, arguments: Map<String, Value>) -> Self {
        Self { id: None, function: FunctionCall { index: None, name: name.into(), arguments } }
    }

    /// Reads a call from a JSON value.
    ///
    /// # Errors
    ///
    /// When the function or its name is missing, or the arguments are not an object, nor a string of one.
    pub fn from_value(value: Value) -> Result<Self, ChatError> {
        Self::read(value, "tool_call")
    }

    pub(crate) fn read(value: Value, at: &str) -> Result<Self, ChatError> {
        let mut fields = Fields::new(value, at)?;
        let mut function = fields.required_object("function")?;
        // OpenAI's clients put the index beside the function. It only orders a list that is in order
        // already, so an index that makes no sense is not worth an error.
        let index = function.take("index").or_else(|| fields.take("index"));
        Ok(Self {
            id: fields.string("id")?,
            function: FunctionCall {
                index: index.and_then(|index| u32::try_from(index.as_u64()?).ok()),
                name: function.required_string("name")?,
                arguments: arguments(function.take("arguments"), &function.path("arguments"))?,
            },
        })
    }
}

/// Arguments as an object, or as OpenAI's clients send them: JSON in a string, empty for none.
fn arguments(value: Option<Value>, at: &str) -> Result<Map<String, Value>, ChatError> {
    match value {
        None => Ok(Map::new()),
        Some(Value::Object(map)) => Ok(map),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(Map::new()),
        Some(Value::String(text)) => match json::parse(&text, at)? {
            Value::Null => Ok(Map::new()),
            Value::Object(map) => Ok(map),
            other => Err(wrong_type(at, &other, "an object")),
        },
        Some(other) => Err(wrong_type(at, &other, "an object")),
    }
}

impl<'de> Deserialize<'de> for ToolCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tools_are_read_leniently() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let full =
            json!({"type": "function", "function": {"name": "f", "description": "d", "parameters": schema}});
        let tool = Tool::from_value(full.clone()).unwrap();
        assert_eq!(tool, Tool::function("f", "d", schema));
        assert_eq!(serde_json::to_value(&tool).unwrap(), full);
        let least = Tool::from_value(json!({"function": {"name": "f", "strict": true}})).unwrap();
        assert_eq!(least, Tool::function("f", "", Value::Null));
        assert_eq!(parse_tools("null").unwrap(), []);
    }

    #[test]
    fn errors_name_the_place() {
        for (text, place) in [
            (r#"{}"#, "tools"),
            (r#"[{}]"#, "tools[0].function"),
            (r#"[{"function":{}}]"#, "tools[0].function.name"),
            (r#"[{"function":{"name":"f","parameters":[]}}]"#, "tools[0].function.parameters"),
        ] {
            let error = parse_tools(text).unwrap_err();
            assert!(error.to_string().contains(&format!("`{place}`")), "{error}");
        }
    }

    #[test]
    fn an_index_may_be_in_either_place_or_nonsense() {
        let index = |call: Value| ToolCall::from_value(call).unwrap().function.index;
        assert_eq!(index(json!({"function": {"name": "f", "index": 2}})), Some(2));
        assert_eq!(index(json!({"index": 3, "function": {"name": "f"}})), Some(3));
        assert_eq!(index(json!({"index": -1, "function": {"name": "f"}})), None);
    }
}
