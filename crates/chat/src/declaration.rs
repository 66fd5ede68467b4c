//! Tool declarations: a JSON schema in the words the model was trained on.
//!
//! Two kinds of schema are written differently. *Declared* ones are the properties of the tool and of objects
//! among them: Ollama reads these into types of its own, which know unions of types (written as one string,
//! in the manner of a Python list) and simple `anyOf`, but not `nullable`. *Inner* ones are everything inside
//! the `items` of an array, which Ollama keeps as plain JSON: unions are lists there, and `nullable` is kept.

use serde_json::{Map, Value};

use crate::{
    ChatError, Tool,
    json::check_depth,
    marks::{END_TOOL, TOOL},
    value::{Keys, sorted, write_number, write_separated, write_string, write_value},
};

type Schema = Map<String, Value>;

/// Names that are words of the schema language in the model's template, which skips them as properties.
const SCHEMA_WORDS: [&str; 5] = ["description", "type", "properties", "required", "nullable"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Declared,
    Inner,
}

/// Writes the declaration of a tool.
pub(crate) fn write_declaration(out: &mut String, tool: &Tool) -> Result<(), ChatError> {
    let function = &tool.function;
    check_depth([&function.parameters], || format!("the schema of tool `{}`", function.name))?;

    out.push_str(TOOL);
    out.push_str("declaration:");
    out.push_str(&function.name);
    out.push('{');
    let mut fields = Fields::new(out);
    write_string(fields.next("description"), &function.description);
    if let Some(schema) = function.parameters.as_object() {
        let types = type_names(schema.get("type"));
        if schema.get("properties").is_some_and(|properties| !properties.is_null()) || !types.is_empty() {
            write_parameters(fields.next("parameters"), schema, &types);
        }
    }
    out.push('}');
    out.push_str(END_TOOL);
    Ok(())
}

fn write_parameters(out: &mut String, schema: &Schema, types: &[String]) {
    out.push('{');
    let mut fields = Fields::new(out);
    if let Some(properties) = properties(schema).filter(|properties| !properties.is_empty()) {
        write_properties(fields.next("properties"), properties, Kind::Declared);
    }
    write_required(&mut fields, schema);
    write_types(&mut fields, types, Kind::Declared);
    out.push('}');
}

fn write_properties(out: &mut String, properties: &Schema, kind: Kind) {
    out.push('{');
    let known = sorted(properties).into_iter().filter_map(|(name, schema)| {
        let schema = schema.as_object().filter(|_| !SCHEMA_WORDS.contains(&name.as_str()))?;
        Some((name, schema))
    });
    write_separated(out, known, |out, (name, schema)| {
        out.push_str(name);
        out.push_str(":{");
        write_property(out, schema, kind);
        out.push('}');
    });
    out.push('}');
}

fn write_property(out: &mut String, schema: &Schema, kind: Kind) {
    let types = match kind {
        Kind::Declared => declared_types(schema),
        Kind::Inner => type_names(schema.get("type")),
    };
    // A declared union is one odd string to the template, and that string is neither STRING nor ARRAY.
    let leading = match types.as_slice() {
        [first, _, ..] if kind == Kind::Inner => first,
        [only] => only,
        _ => "",
    };

    let mut fields = Fields::new(out);
    if let Some(description) = schema.get("description").and_then(Value::as_str).filter(|d| !d.is_empty()) {
        write_string(fields.next("description"), description);
    }
    match leading {
        "STRING" => write_enum(&mut fields, schema),
        "ARRAY" => write_items(&mut fields, schema),
        _ => {}
    }
    if kind == Kind::Inner && schema.get("nullable") == Some(&Value::Bool(true)) {
        fields.next("nullable").push_str("true");
    }
    if leading == "OBJECT" {
        match properties(schema) {
            Some(properties) => write_properties(fields.next("properties"), properties, kind),
            None => fields.next("properties").push_str("{}"),
        }
        write_required(&mut fields, schema);
    }
    write_types(&mut fields, &types, kind);
}

fn write_enum(fields: &mut Fields<'_>, schema: &Schema) {
    let Some(values) = schema.get("enum").and_then(Value::as_array).filter(|values| !values.is_empty())
    else {
        return;
    };
    let out = fields.next("enum");
    out.push('[');
    // A string may only be one of strings, so whatever is listed is written as one.
    write_separated(out, values, |out, value| match value {
        Value::String(text) => write_string(out, text),
        Value::Number(number) => {
            let mut digits = String::new();
            write_number(&mut digits, number);
            write_string(out, &digits);
        }
        other => write_string(out, &other.to_string()),
    });
    out.push(']');
}

/// Writes the schema of an array's items: the three words with a form of their own, and anything else as it is.
fn write_items(fields: &mut Fields<'_>, schema: &Schema) {
    let Some(items) = schema.get("items").and_then(Value::as_object).filter(|items| !items.is_empty()) else {
        return;
    };
    let out = fields.next("items");
    out.push('{');
    let mut fields = Fields::new(out);
    for (key, value) in sorted(items) {
        match (key.as_str(), value) {
            (_, Value::Null) => {}
            ("properties", _) => match value.as_object() {
                Some(properties) => write_properties(fields.next("properties"), properties, Kind::Inner),
                None => fields.next("properties").push_str("{}"),
            },
            ("required", _) => write_strings(fields.next("required"), strings(Some(value))),
            ("type", _) => write_types(&mut fields, &type_names(Some(value)), Kind::Inner),
            _ => write_value(fields.next(key), value, Keys::Quoted),
        }
    }
    out.push('}');
}

fn write_required(fields: &mut Fields<'_>, schema: &Schema) {
    let mut names = strings(schema.get("required")).peekable();
    if names.peek().is_some() {
        write_strings(fields.next("required"), names);
    }
}

fn write_types(fields: &mut Fields<'_>, types: &[String], kind: Kind) {
    match (types, kind) {
        ([], _) => {}
        ([only], _) => write_string(fields.next("type"), only),
        (union, Kind::Declared) => {
            write_string(fields.next("type"), &format!("['{}']", union.join("', '")));
        }
        (union, Kind::Inner) => write_strings(fields.next("type"), union.iter().map(String::as_str)),
    }
}

fn write_strings<'a>(out: &mut String, texts: impl Iterator<Item = &'a str>) {
    out.push('[');
    write_separated(out, texts, write_string);
    out.push(']');
}

/// The types of a declared property: its own, or those of an `anyOf` whose branches say nothing but a type.
fn declared_types(schema: &Schema) -> Vec<String> {
    let own = type_names(schema.get("type"));
    if !own.is_empty() {
        return own;
    }
    let branches = schema.get("anyOf").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut union: Vec<String> = Vec::new();
    for branch in branches {
        let Some(types) = bare_types(branch) else { return Vec::new() };
        for name in types {
            if !union.contains(&name) {
                union.push(name);
            }
        }
    }
    union
}

/// The types of a schema that says nothing else a declaration would show.
fn bare_types(schema: &Value) -> Option<Vec<String>> {
    const SHOWN: [&str; 6] = ["anyOf", "items", "description", "enum", "properties", "required"];
    let schema = schema.as_object()?;
    let says = |word: &&str| match schema.get(*word) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(values)) => !values.is_empty(),
        Some(_) => true,
    };
    let types = type_names(schema.get("type"));
    (!types.is_empty() && !SHOWN.iter().any(says)).then_some(types)
}

/// The type names of a schema in capitals, whether it has one or a list.
fn type_names(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(name)) if !name.is_empty() => vec![name.to_uppercase()],
        other => strings(other).map(str::to_uppercase).collect(),
    }
}

fn properties(schema: &Schema) -> Option<&Schema> {
    schema.get("properties").and_then(Value::as_object)
}

/// The strings of a list; anything else in it, or in its place, is ignored.
fn strings(value: Option<&Value>) -> impl Iterator<Item = &str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Writes `name:` for one field after the other, with commas between.
struct Fields<'a> {
    out: &'a mut String,
    first: bool,
}

impl<'a> Fields<'a> {
    fn new(out: &'a mut String) -> Self {
        Self { out, first: true }
    }

    fn next(&mut self, name: &str) -> &mut String {
        if !self.first {
            self.out.push(',');
        }
        self.first = false;
        self.out.push_str(name);
        self.out.push(':');
        self.out
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The declaration of a tool `f` with one property `p`, less the parts around the property's fields.
    fn property(schema: Value) -> String {
        let mut out = String::new();
        let tool = Tool::function("f", "", json!({"properties": {"p": schema}}));
        write_declaration(&mut out, &tool).unwrap();
        let out = out.replace("<|\"|>", "\"");
        let head = "<|tool>declaration:f{description:\"\",parameters:{properties:{p:{";
        out.strip_prefix(head).unwrap().strip_suffix("}}}}<tool|>").unwrap().to_owned()
    }

    fn parameters(schema: Value) -> String {
        let mut out = String::new();
        write_declaration(&mut out, &Tool::function("f", "d", schema)).unwrap();
        let out = out.replace("<|\"|>", "\"");
        let head = "<|tool>declaration:f{description:\"d\"";
        out.strip_prefix(head).unwrap().strip_suffix("}<tool|>").unwrap().to_owned()
    }

    #[test]
    fn parameters_appear_with_properties_or_a_type() {
        assert_eq!(parameters(Value::Null), "");
        assert_eq!(parameters(json!({})), "");
        assert_eq!(parameters(json!({"required": ["a"]})), "");
        assert_eq!(parameters(json!({"properties": null, "type": ""})), "");
        assert_eq!(parameters(json!({"properties": {}})), ",parameters:{}");
        assert_eq!(parameters(json!({"type": "object"})), ",parameters:{type:\"OBJECT\"}");
        assert_eq!(
            parameters(json!({"type": "object", "required": ["b", "a"], "properties": {}})),
            ",parameters:{required:[\"b\",\"a\"],type:\"OBJECT\"}"
        );
    }

    #[test]
    fn properties_are_sorted_and_schema_words_are_skipped() {
        let number = json!({"type": "number"});
        let schema = json!({"properties": {"b": number, "type": number, "a": number, "B": number,
            "description": number, "properties": number, "required": number, "nullable": number, "odd": true}});
        assert_eq!(
            parameters(schema),
            ",parameters:{properties:{B:{type:\"NUMBER\"},a:{type:\"NUMBER\"},b:{type:\"NUMBER\"}}}"
        );
    }

    #[test]
    fn fields_of_a_property_come_in_order() {
        assert_eq!(property(json!({})), "");
        assert_eq!(
            property(json!({"type": "integer", "description": "d"})),
            "description:\"d\",type:\"INTEGER\""
        );
        assert_eq!(
            property(json!({"enum": ["b", "a", 1, 2.5, true, null], "type": "string"})),
            "enum:[\"b\",\"a\",\"1\",\"2.5\",\"true\",\"null\"],type:\"STRING\""
        );
        assert_eq!(property(json!({"enum": [1, 2], "type": "integer"})), "type:\"INTEGER\"");
        assert_eq!(property(json!({"type": "array"})), "type:\"ARRAY\"");
        assert_eq!(property(json!({"type": "array", "items": {}})), "type:\"ARRAY\"");
        assert_eq!(property(json!({"type": "object"})), "properties:{},type:\"OBJECT\"");
        assert_eq!(
            property(json!({"type": "object", "description": "d", "required": ["x"],
                "properties": {"y": {"type": "string", "nullable": true}, "x": {"type": "boolean"}}})),
            "description:\"d\",properties:{x:{type:\"BOOLEAN\"},y:{type:\"STRING\"}},required:[\"x\"],\
             type:\"OBJECT\""
        );
    }

    #[test]
    fn unions_are_one_string_where_declared_and_lists_inside_items() {
        assert_eq!(
            property(json!({"type": ["string", "null"], "enum": ["a"], "nullable": true})),
            "type:\"['STRING', 'NULL']\""
        );
        assert_eq!(property(json!({"type": ["string"], "enum": ["a"]})), "enum:[\"a\"],type:\"STRING\"");
        assert_eq!(
            property(json!({"type": "object", "properties": {"q": {"type": ["integer", "null"]}}})),
            "properties:{q:{type:\"['INTEGER', 'NULL']\"}},type:\"OBJECT\""
        );
        assert_eq!(
            property(json!({"type": "array", "items": {"type": ["string", "null"]}})),
            "items:{type:[\"STRING\",\"NULL\"]},type:\"ARRAY\""
        );
        assert_eq!(
            property(json!({"type": "array", "items": {"type": "object", "properties": {
                "q": {"type": ["string", "null"], "enum": ["a"], "nullable": true}}}})),
            "items:{properties:{q:{enum:[\"a\"],nullable:true,type:[\"STRING\",\"NULL\"]}},type:\"OBJECT\"},\
             type:\"ARRAY\""
        );
    }

    #[test]
    fn any_of_bare_types_is_a_union() {
        let any_of = |branches: Value| property(json!({"description": "d", "anyOf": branches}));
        assert_eq!(
            any_of(json!([{"type": "string"}, {"type": ["null", "string"]}])),
            "description:\"d\",type:\"['STRING', 'NULL']\""
        );
        assert_eq!(
            any_of(json!([{"type": "string", "format": "date"}])),
            "description:\"d\",type:\"STRING\""
        );
        assert_eq!(
            any_of(json!([{"type": "string"}, {"type": "object", "properties": {}}])),
            "description:\"d\""
        );
        assert_eq!(any_of(json!([{"type": "string"}, {"enum": ["a"]}])), "description:\"d\"");
        assert_eq!(any_of(json!([])), "description:\"d\"");
    }

    #[test]
    fn items_keep_every_key() {
        assert_eq!(
            property(json!({"type": "array", "items": {"type": "integer", "minimum": 1.0, "maximum": 2.5,
                "default": null, "examples": [1, "a", {"k": false}], "description": "d",
                "anyOf": [{"type": "x"}]}})),
            "items:{anyOf:[{\"type\":\"x\"}],description:\"d\",examples:[1,\"a\",{\"k\":false}],\
             maximum:2.5,minimum:1,type:\"INTEGER\"},type:\"ARRAY\""
        );
        assert_eq!(
            property(json!({"type": "array", "items": {"type": "object", "required": ["a"], "properties": {
                "a": {"type": "array", "items": {"type": "string"}},
                "o": {"type": "object", "nullable": true, "required": ["n"],
                    "properties": {"n": {"type": "null"}}}}}})),
            "items:{properties:{a:{items:{type:\"STRING\"},type:\"ARRAY\"},\
             o:{nullable:true,properties:{n:{type:\"NULL\"}},required:[\"n\"],type:\"OBJECT\"}},\
             required:[\"a\"],type:\"OBJECT\"},type:\"ARRAY\""
        );
    }
}
