//! What must hold for any conversation and any reply.

use proptest::prelude::*;
use rullama_chat::{
    Conversation, Delta, Message, Piece, PromptStyle, ReplyOptions, ReplyParser, ReplyParts, Role, Tool,
    ToolCall, parse_messages, parse_tools, render,
};
use serde_json::{Map, Number, Value, json};

/// The deltas of a reply with neighbouring texts joined, which no cutting may change.
fn parse<'a>(options: ReplyOptions<'_>, chunks: impl IntoIterator<Item = &'a str>) -> Vec<Delta> {
    let mut parser = ReplyParser::new(options);
    let mut joined: Vec<Delta> = Vec::new();
    let mut take = |deltas: Vec<Delta>| {
        for delta in deltas {
            match (joined.last_mut(), delta) {
                (Some(Delta::Answer(last)), Delta::Answer(text)) => last.push_str(&text),
                (Some(Delta::Thought(last)), Delta::Thought(text)) => last.push_str(&text),
                (_, delta) => joined.push(delta),
            }
        }
    };
    for chunk in chunks {
        take(parser.push(chunk));
    }
    take(parser.finish());
    joined
}

/// Text made of what replies are made of, whole and broken.
fn reply_text() -> impl Strategy<Value = String> {
    let fragments = prop_oneof![
        3 => prop::sample::select(vec![
            "<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<|\"|>",
            "thought\n",
        ]),
        2 => prop::sample::select(vec![
            "<", "<|", "<|chan", "nel>", "<channel", "|>", "<|tool_", "call>", "<tool_call|", ">",
            "thou", "ght", "\n",
        ]),
        2 => prop::sample::select(vec![" ", "\n\n", "\t", "\u{a0}", "word", "é", "語", "🦀", "."]),
        2 => prop::sample::select(vec![
            "call:", "call:f{", "{", "}", "[", "]", ",", ":", "a:", "b", "'", "\"", "\\", "1",
            "true", "call:f{a:x}",
        ]),
    ];
    prop::collection::vec(fragments, 0..24).prop_map(|fragments| fragments.concat())
}

/// Any JSON a client might send.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any_number().prop_map(Value::Number),
        any::<String>().prop_map(Value::from),
        "[a-z]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        let words = prop::sample::select(vec![
            "role",
            "content",
            "images",
            "tool_calls",
            "function",
            "name",
            "arguments",
            "type",
            "properties",
            "items",
            "required",
            "enum",
            "anyOf",
            "nullable",
            "description",
            "parameters",
            "index",
            "id",
        ]);
        let key = prop_oneof![words.prop_map(str::to_owned), any::<String>()];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6).prop_map(|entries| entries.into_iter().collect()),
        ]
    })
}

fn any_number() -> impl Strategy<Value = Number> {
    prop_oneof![
        any::<i64>().prop_map(Number::from),
        any::<u64>().prop_map(Number::from),
        any::<f64>().prop_filter_map("JSON has no such number", Number::from_f64),
        (-1e6..1e6_f64).prop_filter_map("JSON has no such number", Number::from_f64),
    ]
}

fn any_call() -> impl Strategy<Value = ToolCall> {
    let arguments = prop::collection::vec((any::<String>(), any_json()), 0..3);
    (any::<String>(), arguments, prop::option::of("[ab]")).prop_map(|(name, arguments, id)| ToolCall {
        id,
        ..ToolCall::new(name, arguments.into_iter().collect())
    })
}

fn any_message() -> impl Strategy<Value = Message> {
    let roles =
        vec![Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool, Role::Other("x".into())];
    let content = prop_oneof![any::<String>(), "(\\[img\\]|\\[img-[0-9]{0,3}\\]| |a){0,6}", reply_text()];
    let texts =
        (content, prop::option::of(any::<String>()), prop::option::of("[ab]?"), prop::option::of("[ab]?"));
    let attached = || prop::collection::vec(Just(String::new()), 0..3);
    let calls = prop::collection::vec(any_call(), 0..3);
    let media = (attached(), attached());
    (prop::sample::select(roles), texts, media, calls).prop_map(
        |(role, texts, (images, audio), tool_calls)| {
            let (content, thinking, tool_name, tool_call_id) = texts;
            Message { role, content, thinking, images, audio, tool_calls, tool_name, tool_call_id }
        },
    )
}

fn any_tool() -> impl Strategy<Value = Tool> {
    (any::<String>(), any::<String>(), any_json(), any::<bool>()).prop_map(
        |(name, description, schema, wrap)| {
            let parameters =
                if wrap { json!({"type": "object", "properties": {"p": schema}}) } else { schema };
            Tool::function(name, description, parameters)
        },
    )
}

/// Arguments the notation can carry.
///
/// It has no escapes, so a string cannot hold its own delimiter or the mark that ends the call; and keys are
/// bare, so a key must be something, without white space and without the characters that structure arguments.
fn carried_arguments() -> impl Strategy<Value = Map<String, Value>> {
    let key = "[^\\s{}\\[\\]:,\"'<>]{1,8}";
    let text = prop_oneof![any::<String>(), reply_text()]
        .prop_filter("not carried", |text| !text.contains("<|\"|>") && !text.contains("<tool_call|>"));
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any_number().prop_map(Value::Number),
        text.prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(4, 32, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..5).prop_map(|entries| entries.into_iter().collect()),
        ]
    });
    prop::collection::vec((key, value), 0..5).prop_map(|entries| entries.into_iter().collect())
}

/// Equality of JSON in which `2.0` and `2` are the same number, as they are in the notation.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            if a.is_f64() || b.is_f64() {
                a.as_f64() == b.as_f64()
            } else {
                a == b
            }
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_cutting_gives_the_same_parts(
        text in reply_text(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        think: bool,
        thought_open: bool,
    ) {
        let tools = [Tool::function("f", "", json!({"properties": {"a": {"type": "string"}, "b": {}}}))];
        let options = ReplyOptions { think, thought_open, tools: &tools };
        let whole = parse(options, [text.as_str()]);
        prop_assert_eq!(&whole, &parse(options, text.split_inclusive(|_| true)));

        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        at.retain(|at| text.is_char_boundary(*at));
        at.sort_unstable();
        let bounds: Vec<usize> = [0].into_iter().chain(at).chain([text.len()]).collect();
        prop_assert_eq!(&whole, &parse(options, bounds.windows(2).map(|range| &text[range[0]..range[1]])));
    }

    /// Nothing is lost or made up: with no marks in it, a reply is its answer.
    #[test]
    fn plain_text_is_the_answer(text in "[^<]{0,64}") {
        let expected = if text.is_empty() { vec![] } else { vec![Delta::Answer(text.clone())] };
        prop_assert_eq!(parse(ReplyOptions::default(), text.split_inclusive(' ')), expected);
    }

    #[test]
    fn any_conversation_renders(
        messages in prop::collection::vec(any_message(), 0..6),
        tools in prop::collection::vec(any_tool(), 0..3),
        think: bool,
        large: bool,
    ) {
        let style = if large { PromptStyle::Large } else { PromptStyle::Small };
        let prompt = render(&Conversation { messages: &messages, tools: &tools, think }, style).unwrap();
        let text = prompt.to_string();
        prop_assert!(text.starts_with("<bos>"));
        prop_assert_eq!(text, prompt.pieces.iter().map(Piece::to_string).collect::<String>());
        for piece in &prompt.pieces {
            match piece {
                Piece::Text(text) => prop_assert!(!text.is_empty()),
                Piece::Media { index } => prop_assert!(*index < prompt.media.len()),
            }
        }
        for pair in prompt.pieces.windows(2) {
            prop_assert!(!matches!(pair, [Piece::Text(_), Piece::Text(_)]));
        }
        for source in &prompt.media {
            prop_assert!(source.medium < messages[source.message].media().len());
        }
    }

    #[test]
    fn any_json_is_read_or_refused(value in any_json()) {
        let text = json!([value]).to_string();
        let _ = parse_tools(&text);
        if let Ok(messages) = parse_messages(&text) {
            let back = serde_json::to_string(&messages).unwrap();
            prop_assert_eq!(parse_messages(&back).unwrap(), messages);
        }
    }

    #[test]
    fn a_rendered_call_parses_to_the_same_call(
        name in "[a-zA-Z_][a-zA-Z0-9_.-]{0,12}",
        arguments in carried_arguments(),
    ) {
        let call = ToolCall::new(name.as_str(), arguments.clone());
        let messages = [Message { tool_calls: vec![call], ..Message::assistant("") }];
        let conversation = Conversation { messages: &messages, tools: &[], think: false };
        let prompt = render(&conversation, PromptStyle::Small).unwrap().to_string();
        let written = prompt.strip_prefix("<bos><|turn>model\n").unwrap();

        let mut parts = ReplyParts::default();
        parts.extend(parse(ReplyOptions::default(), [written]));
        prop_assert_eq!((parts.answer.as_str(), parts.thought.as_str()), ("", ""));
        prop_assert_eq!(&parts.malformed, &[]);
        prop_assert_eq!(parts.calls.len(), 1);
        let found = &parts.calls[0].function;
        prop_assert_eq!(&found.name, &name);
        let (found, expected) = (Value::from(found.arguments.clone()), Value::from(arguments));
        prop_assert!(same(&found, &expected), "{found} is not {expected}");
    }
}
