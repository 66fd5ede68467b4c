//! The shared test vectors: conversations with their prompts, and replies with their parts.

use rullama_chat::{
    Conversation, Message, Piece, PromptStyle, ReplyOptions, ReplyParser, ReplyParts, Tool, ToolCall, render,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

fn read<T: DeserializeOwned>(file: &str) -> T {
    let path = format!("{}/../../testdata/chat/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {path}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("cannot understand {path}: {error}"))
}

#[derive(Deserialize)]
struct PromptCase {
    name: String,
    messages: Vec<Message>,
    tools: Vec<Tool>,
    think: bool,
    variant: String,
    prompt: String,
}

impl PromptCase {
    fn check(&self) {
        let style = match self.variant.as_str() {
            "small" => PromptStyle::Small,
            "large" => PromptStyle::Large,
            other => panic!("{}: variant {other}", self.name),
        };
        let conversation = Conversation { messages: &self.messages, tools: &self.tools, think: self.think };
        let prompt = render(&conversation, style).expect("the vectors are not deep");
        assert_eq!(prompt.to_string(), self.prompt, "{}", self.name);

        let tags = self.prompt.matches("[img-").count();
        let media = prompt.pieces.iter().filter(|piece| matches!(piece, Piece::Media { .. })).count();
        assert_eq!(media, tags, "{}", self.name);
        let opens_thought = self.prompt.ends_with("<|channel>thought\n");
        assert_eq!(prompt.thought_open, opens_thought, "{}", self.name);
    }
}

#[test]
fn prompts_are_those_of_the_vectors() {
    let cases: Vec<PromptCase> = read("prompts.json");
    assert!(cases.len() >= 50, "only {} cases", cases.len());
    cases.iter().for_each(PromptCase::check);
}

#[derive(Deserialize)]
struct TemplateCases {
    same: Vec<PromptCase>,
    different: Vec<TemplateDifference>,
}

#[derive(Deserialize)]
struct TemplateDifference {
    name: String,
    reason: String,
}

#[test]
fn prompts_are_those_of_the_template_where_ollama_follows_it() {
    let cases: TemplateCases = read("hugging-face.json");
    assert!(cases.same.len() >= 6, "only {} cases", cases.same.len());
    cases.same.iter().for_each(PromptCase::check);
    for case in cases.different {
        assert!(!case.reason.is_empty(), "{} differs for no reason", case.name);
    }
}

#[derive(Deserialize)]
struct ReplyCase {
    name: String,
    think: bool,
    thought_open: bool,
    tools: Vec<Tool>,
    text: String,
    answer: String,
    thought: String,
    calls: Vec<ExpectedCall>,
    malformed: Vec<String>,
}

#[derive(Deserialize)]
struct ExpectedCall {
    name: String,
    arguments: Map<String, Value>,
}

impl ReplyCase {
    fn parse<'a>(&self, chunks: impl IntoIterator<Item = &'a str>) -> ReplyParts {
        let options = ReplyOptions { think: self.think, thought_open: self.thought_open, tools: &self.tools };
        let mut parser = ReplyParser::new(options);
        let mut parts = ReplyParts::default();
        for chunk in chunks {
            parts.extend(parser.push(chunk));
        }
        parts.extend(parser.finish());
        parts
    }

    fn check(&self, parts: &ReplyParts) {
        let name = &self.name;
        assert_eq!(parts.answer, self.answer, "answer of: {name}");
        assert_eq!(parts.thought, self.thought, "thought of: {name}");
        let malformed: Vec<&str> = parts.malformed.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(malformed, self.malformed, "malformed calls of: {name}");
        let expected = (0_u32..).zip(&self.calls).map(|(index, expected)| {
            let mut call = ToolCall::new(&expected.name, expected.arguments.clone());
            call.function.index = Some(index);
            call
        });
        assert_eq!(parts.calls, expected.collect::<Vec<_>>(), "calls of: {name}");
    }
}

#[test]
fn replies_have_the_parts_of_the_vectors_however_they_are_cut() {
    let cases: Vec<ReplyCase> = read("replies.json");
    assert!(cases.len() >= 40, "only {} cases", cases.len());
    for case in cases {
        let text = case.text.as_str();
        case.check(&case.parse([text]));
        case.check(&case.parse(text.split_inclusive(|_| true)));
        for (at, _) in text.char_indices() {
            case.check(&case.parse([&text[..at], &text[at..]]));
        }
    }
}

/// A reply goes into the history as it was written, so that the next prompt begins with the same tokens.
#[test]
fn a_reply_renders_back_to_what_the_model_wrote() {
    let tools = [Tool::function("bash", "Run", serde_json::json!({"type": "object"}))];
    let question = Message::user("List files");
    let asked = Conversation { messages: std::slice::from_ref(&question), tools: &tools, think: true };
    let prompt = render(&asked, PromptStyle::Small).unwrap();
    let written =
        "<|channel>thought\nLook.\n<channel|><|tool_call>call:bash{command:<|\"|>ls<|\"|>}<tool_call|>";

    let mut parser = ReplyParser::new(ReplyOptions { think: true, thought_open: false, tools: &tools });
    let mut parts = ReplyParts::default();
    parts.extend(parser.push(written));
    parts.extend(parser.finish());
    let messages = [question, parts.into_message(), Message::tool("bash", "a.txt")];
    let answered = Conversation { messages: &messages, tools: &tools, think: true };

    let next = render(&answered, PromptStyle::Small).unwrap();
    assert!(next.to_string().starts_with(&format!("{prompt}{written}")));
    assert!(next.thought_open);
}
