//! Reading the text of a tool call: `call:NAME{key:value,…}`.

use serde_json::{Map, Value};

use crate::{
    ChatError, ToolCall,
    convert::{BareKeys, to_json},
    repair::{Signature, repairs},
};

/// Parses what stands between the marks of a call, repairing what models get wrong.
pub(crate) fn parse_call(text: &str, signatures: &[Signature]) -> Result<ToolCall, ChatError> {
    let call = text.strip_prefix("call:").ok_or(ChatError::CallWithoutPrefix)?;
    let brace = call.find('{').ok_or(ChatError::CallWithoutArguments)?;
    let (name, arguments) = call.split_at(brace);
    let name = name.trim();
    if name.is_empty() {
        return Err(ChatError::CallWithoutName);
    }

    let as_written = match parse_arguments(arguments, BareKeys::Words) {
        Ok(arguments) => return Ok(ToolCall::new(name, arguments)),
        Err(error) => error,
    };
    let signature = signatures.iter().find(|signature| signature.name == name);
    let repaired = repairs(arguments, signature);
    // Keys such as `Content-Type` are no words, yet the format writes them bare like any other. They come last,
    // because a piece of raw text before a colon may look like one.
    let attempts = repaired
        .iter()
        .map(|text| (text.as_str(), BareKeys::Words))
        .chain([(arguments, BareKeys::Any)])
        .chain(repaired.iter().map(|text| (text.as_str(), BareKeys::Any)));
    for (text, keys) in attempts {
        if let Ok(arguments) = parse_arguments(text, keys) {
            return Ok(ToolCall::new(name, arguments));
        }
    }
    Err(ChatError::CallArguments { name: name.to_owned(), reason: as_written.to_string() })
}

fn parse_arguments(text: &str, keys: BareKeys) -> serde_json::Result<Map<String, Value>> {
    serde_json::from_str(&to_json(text, keys))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Tool;

    fn parse(text: &str) -> Result<(String, Value), ChatError> {
        let schema = json!({"type": "object", "properties": {
            "city": {"type": "string"},
            "note": {"anyOf": [{"type": "null"}, {"type": ["String"]}]},
            "days": {"type": "integer"}}});
        let signatures = [Signature::of(&Tool::function("weather", "", schema))];
        let call = parse_call(&text.replace('Q', "<|\"|>"), &signatures)?;
        Ok((call.function.name, call.function.arguments.into()))
    }

    #[test]
    fn well_formed_calls() {
        for (text, expected) in [
            ("call:f{}", json!({})),
            ("call:f{a:1}", json!({"a": 1})),
            ("call: f {a:1}", json!({"a": 1})),
            (
                "call:f{a:QxQ,b:true,c:null,d:-1.5e3,e:[QaQ,{g:Q}Q}],h:{}}",
                json!({"a": "x", "b": true, "c": null, "d": -1500.0, "e": ["a", {"g": "}"}], "h": {}}),
            ),
            (
                "call:f{ a : Qsays \"hi\", \\ 'x'\n{b:1},c:2Q , b_2: 3 }",
                json!({"a": "says \"hi\", \\ 'x'\n{b:1},c:2", "b_2": 3}),
            ),
            ("call:f{\"a\":\"b,c:d\",QeQ:Q\tQ}", json!({"a": "b,c:d", "e": "\t"})),
            ("call:f{größe:1,名前:2,7:3}", json!({"größe": 1, "名前": 2, "7": 3})),
            ("call:f{a:\"x\\\"y\"}", json!({"a": "x\"y"})),
            ("call:f{a:QQ}", json!({"a": ""})),
            ("call:f{a:1}\n", json!({"a": 1})),
            (
                "call:f{Content-Type:Qa/bQ,x.y:1,$z:{a-b:2}}",
                json!({"Content-Type": "a/b", "x.y": 1, "$z": {"a-b": 2}}),
            ),
            ("call:f{n:9007199254740993,x:0.1}", json!({"n": 9_007_199_254_740_993_u64, "x": 0.1})),
        ] {
            assert_eq!(parse(text), Ok(("f".to_owned(), expected)), "{text}");
        }
    }

    #[test]
    fn repairs_are_made_in_order() {
        for (text, expected) in [
            ("call:f{a:'x y'}", json!({"a": "x y"})),
            ("call:f{a: 'x',b:'y'Q}", json!({"a": "x", "b": "y"})),
            ("call:f{a:Qit's: 'x'Q,b:'y'}", json!({"a": "it's: 'x'", "b": "y"})),
            ("call:f{a:Qx}", json!({"a": "x"})),
            ("call:f{a:[QxQ,Qy]", json!({"a": ["x", "y"]})),
            ("call:f{a:Qx", json!({"a": "x"})),
            ("call:f{a:Qx \n", json!({"a": "x"})),
            ("call:f{a:QxQ", json!({"a": "x"})),
            ("call:f{a:1", json!({"a": 1})),
            ("call:f{a:'x'", json!({"a": "x"})),
            ("call:f{a-b:Qx", json!({"a-b": "x"})),
        ] {
            assert_eq!(parse(text), Ok(("f".to_owned(), expected)), "{text}");
        }
    }

    #[test]
    fn raw_text_is_a_string_where_the_schema_says_so() {
        for (text, expected) in [
            ("call:weather{city:Paris}", json!({"city": "Paris"})),
            ("call:weather{city: New York, NY ,days:2}", json!({"city": "New York, NY", "days": 2})),
            ("call:weather{days:2,note:see: a,b}", json!({"days": 2, "note": "see: a,b"})),
            ("call:weather{city:Paris,note:true story}", json!({"city": "Paris", "note": "true story"})),
            ("call:weather{city:Paris", json!({"city": "Paris"})),
            ("call:weather{city:2024-01-01}", json!({"city": "2024-01-01"})),
            ("call:weather{city:Paris,note:null}", json!({"city": "Paris", "note": null})),
            ("call:weather{note:QaQ,city:Paris}", json!({"note": "a", "city": "Paris"})),
        ] {
            assert_eq!(parse(text), Ok(("weather".to_owned(), expected)), "{text}");
        }
        assert!(parse("call:weather{days:two}").is_err());
        assert!(parse("call:other{city:Paris}").is_err());
    }

    #[test]
    fn hopeless_calls_say_what_is_wrong() {
        assert_eq!(parse(""), Err(ChatError::CallWithoutPrefix));
        assert_eq!(parse(" call:f{}"), Err(ChatError::CallWithoutPrefix));
        assert_eq!(parse("call:f"), Err(ChatError::CallWithoutArguments));
        assert_eq!(parse("call: {}"), Err(ChatError::CallWithoutName));
        for arguments in ["{a:}", "{a:x}", "{:1}", "{a:1}}", "{a:[1}", "{a:1e999}", "{a:{b:Qx}}"] {
            let error = parse(&format!("call:f{arguments}")).unwrap_err();
            assert_eq!(error.code(), "chat.malformed_call");
            assert!(error.to_string().starts_with("the arguments of the call to `f`"), "{error}");
        }
        let deep = format!("call:f{{a:{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(matches!(parse(&deep), Err(ChatError::CallArguments { .. })));
    }
}
