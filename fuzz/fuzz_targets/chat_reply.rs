//! Arbitrary replies, cut anywhere: the parts are those of the whole text.

#![no_main]

use rullama_chat::{ReplyOptions, ReplyParser, ReplyParts, Tool};

/// Text made of what means something in a reply, which arbitrary bytes would seldom spell.
const WORDS: [&str; 24] = [
    "<|channel>",
    "<channel|>",
    "<|tool_call>",
    "<tool_call|>",
    "<|tool_response>",
    "<|\"|>",
    "thought\n",
    "call:",
    "f",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "'",
    "\"",
    "\\",
    " ",
    "\n",
    "a",
    "1",
    "<",
    "é",
];

fn parse(options: ReplyOptions<'_>, chunks: impl Iterator<Item = String>) -> ReplyParts {
    let mut parser = ReplyParser::new(options);
    let mut parts = ReplyParts::default();
    for chunk in chunks {
        parts.extend(parser.push(&chunk));
    }
    parts.extend(parser.finish());
    parts
}

libfuzzer_sys::fuzz_target!(|input: (bool, bool, Vec<u8>, String, u8)| {
    let (think, thought_open, choices, tail, cut) = input;
    let words = choices.iter().map(|&choice| WORDS[choice as usize % WORDS.len()]);
    let text: String = words.chain([tail.as_str()]).collect();
    let schema = serde_json::json!({"properties": {"a": {"type": "string"}}});
    let tools = [Tool::function("f", "", schema)];
    let options = ReplyOptions { think, thought_open, tools: &tools };

    let whole = parse(options, std::iter::once(text.clone()));
    let length = usize::from(cut) % 7 + 1;
    let characters: Vec<char> = text.chars().collect();
    let cut = parse(options, characters.chunks(length).map(|chunk| chunk.iter().collect()));
    assert_eq!(whole, cut);
});
