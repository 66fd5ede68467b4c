//! Arbitrary JSON as messages and tools: refused, or rendered.

#![no_main]

use rullama_chat::{Conversation, Message, PromptStyle, parse_messages, parse_tools, render};

libfuzzer_sys::fuzz_target!(|input: (&str, &str, bool, bool)| {
    let (messages, tools, think, large) = input;
    let messages = parse_messages(messages).unwrap_or_else(|_| vec![Message::user(messages)]);
    let tools = parse_tools(tools).unwrap_or_default();
    let style = if large { PromptStyle::Large } else { PromptStyle::Small };
    let conversation = Conversation { messages: &messages, tools: &tools, think };
    if let Ok(prompt) = render(&conversation, style) {
        assert!(prompt.to_string().starts_with("<bos>"));
    }
});
