//! Repairs of arguments that are not JSON after conversion: mistakes models are known to make, each undone by a
//! change of text that leaves well-formed parts alone.

use serde_json::Value;

use crate::{
    Tool,
    convert::{BareKeys, Part, Scanner, bare_key, quoted_length},
    marks::QUOTE,
};

/// What repairs need to know about a tool: which arguments it has, and which of them may be strings.
#[derive(Debug, Clone)]
pub(crate) struct Signature {
    pub(crate) name: String,
    arguments: Vec<(String, bool)>,
}

impl Signature {
    pub(crate) fn of(tool: &Tool) -> Self {
        let properties = tool.function.parameters.get("properties").and_then(Value::as_object);
        let arguments = properties.into_iter().flatten();
        Self {
            name: tool.function.name.clone(),
            arguments: arguments.map(|(name, schema)| (name.clone(), accepts_string(schema))).collect(),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.arguments.iter().any(|(argument, _)| argument == name)
    }

    fn has_string(&self, name: &str) -> bool {
        self.arguments.iter().any(|(argument, is_string)| argument == name && *is_string)
    }
}

/// Whether a schema, or a branch of its `anyOf`, names the type string.
fn accepts_string(schema: &Value) -> bool {
    let is_string = |name: &Value| name.as_str().is_some_and(|name| name.eq_ignore_ascii_case("string"));
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        match schema.get("type") {
            Some(Value::Array(names)) if names.iter().any(is_string) => return true,
            Some(name) if is_string(name) => return true,
            _ => open.extend(schema.get("anyOf").and_then(Value::as_array).into_iter().flatten()),
        }
    }
    false
}

/// The repaired texts to try, in order: each repair on top of those before it, and last of all of them together
/// after raw text has been made a string. Repairs that change nothing are left out.
pub(crate) fn repairs(arguments: &str, signature: Option<&Signature>) -> Vec<String> {
    let mut texts = vec![delimit_single_quoted(arguments)];
    texts.push(close_string(&texts[0]));
    texts.push(close_object(&texts[1]));
    if let Some(raw) = signature.and_then(|signature| delimit_raw(arguments, signature)) {
        texts.push(close_object(&close_string(&delimit_single_quoted(&raw))));
    }
    texts.retain(|text| text != arguments);
    texts.dedup();
    texts
}

/// `key:'text'` becomes a delimited string. A delimiter right after it is a leftover of the same mistake.
fn delimit_single_quoted(arguments: &str) -> String {
    let mut out = String::with_capacity(arguments.len());
    let mut scanner = Scanner::new(arguments);
    let mut single_quotes_close = true;
    while let Some(part) = scanner.next() {
        push_part(&mut out, &part);
        if !matches!(part, Part::Other(':')) {
            continue;
        }
        let value = scanner.rest.trim_start();
        if !single_quotes_close || !value.starts_with('\'') {
            continue;
        }
        match quoted_length(value, '\'') {
            Some(length) => {
                push_delimited(&mut out, &value[1..length - 1]);
                let after = &value[length..];
                scanner.rest = after.strip_prefix(QUOTE).unwrap_or(after);
            }
            None => single_quotes_close = false,
        }
    }
    out
}

/// An odd delimiter gets its partner at the end, before a closing bracket if there is one.
fn close_string(arguments: &str) -> String {
    let mut out = arguments.to_owned();
    if arguments.matches(QUOTE).count() % 2 == 1 {
        let text = arguments.trim_end();
        out.insert_str(text.strip_suffix(['}', ']']).unwrap_or(text).len(), QUOTE);
    }
    out
}

/// Arguments that do not end with `}` get one.
fn close_object(arguments: &str) -> String {
    let mut out = arguments.trim_end().to_owned();
    if !out.ends_with('}') {
        out.push('}');
    }
    out
}

/// Values without any delimiters become strings where the tool wants one. `None` if there are none.
fn delimit_raw(arguments: &str, signature: &Signature) -> Option<String> {
    let mut out = String::with_capacity(arguments.len());
    let mut scanner = Scanner::new(arguments);
    let mut found = false;
    while let Some(part) = scanner.next() {
        push_part(&mut out, &part);
        if let Part::Other('{' | ',') = part
            && let Some((key, value)) = bare_key(scanner.rest, BareKeys::Any)
            && signature.has_string(key)
            && !starts_structured(value)
        {
            let length = raw_length(value, signature);
            let (raw, rest) = value.split_at(length);
            out.push_str(key);
            out.push(':');
            if is_scalar(raw) {
                out.push_str(raw);
            } else {
                push_delimited(&mut out, raw.trim());
                found = true;
            }
            scanner.rest = rest;
        }
    }
    found.then_some(out)
}

/// Whether a value has delimiters, quotes or brackets of its own.
fn starts_structured(value: &str) -> bool {
    let value = value.trim_start();
    value.starts_with(QUOTE) || value.starts_with(['\'', '"', '{', '['])
}

/// Whether a value is JSON as it stands: a number, a boolean or null.
fn is_scalar(value: &str) -> bool {
    serde_json::from_str::<Value>(value).is_ok()
}

/// How far raw text goes: to the next argument of the tool, else to the end of the arguments.
fn raw_length(value: &str, signature: &Signature) -> usize {
    let next = value
        .match_indices(',')
        .map(|(at, _)| at)
        .find(|at| bare_key(&value[at + 1..], BareKeys::Any).is_some_and(|(key, _)| signature.has(key)));
    next.unwrap_or_else(|| {
        let text = value.trim_end();
        text.strip_suffix('}').unwrap_or(text).len()
    })
}

fn push_part(out: &mut String, part: &Part<'_>) {
    match part {
        Part::Delimited(text) => push_delimited(out, text),
        Part::Quoted(text) => out.push_str(text),
        Part::Other(c) => out.push(*c),
    }
}

fn push_delimited(out: &mut String, text: &str) {
    out.push_str(QUOTE);
    out.push_str(text);
    out.push_str(QUOTE);
}
