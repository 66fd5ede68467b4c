//! The reply parser: text from the model becomes an answer, a thought and tool calls, while it is written.
//!
//! However the text is cut, the parts are those of the whole text. Three rules follow from that:
//!
//! - the tag that comes first in the text counts, whatever comes after it;
//! - white space is held back until it is clear whether a tag follows it, for it goes away in front of one;
//! - white space after a tag goes away however late it comes.

use crate::{
    ChatError, Message, Tool, ToolCall,
    call::parse_call,
    marks::THOUGHT,
    repair::Signature,
    tags::{Tag, TagSplitter, Token},
};

/// What a parser must know about the prompt.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReplyOptions<'a> {
    /// Whether the model was asked to think. If not, thoughts it has all the same are dropped.
    pub think: bool,
    /// Whether the prompt ended inside an open thought, which is so when it ended with the results of tools and
    /// thinking is on ([`Prompt::thought_open`](crate::Prompt::thought_open)).
    pub thought_open: bool,
    /// The tools offered. Their schemas help to read calls in which a string lacks its delimiters.
    pub tools: &'a [Tool],
}

/// A newly known part of a reply.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Delta {
    /// More of the answer.
    Answer(String),
    /// More of the thought.
    Thought(String),
    /// A call, complete. Its index counts the calls of the reply; it has no id yet.
    Call(ToolCall),
    /// A call that cannot be understood. Clients see nothing of it; it is here to be logged.
    MalformedCall {
        /// What stands between the marks of the call.
        text: String,
        /// What is wrong with it.
        error: ChatError,
    },
}

/// Parses one reply as it is written.
///
/// The text must show the special tokens that mark thoughts, calls and strings. The whole reply takes time
/// proportional to its length, even when it comes one character at a time.
#[derive(Debug, Clone)]
pub struct ReplyParser {
    splitter: TagSplitter,
    reader: Reader,
}

impl ReplyParser {
    /// A parser for the reply to one prompt.
    #[must_use]
    pub fn new(options: ReplyOptions<'_>) -> Self {
        let state = if options.think && options.thought_open {
            State::Thought { name: None }
        } else {
            State::Answer { skip: Skip::Nothing }
        };
        let reader = Reader {
            state,
            think: options.think,
            space: String::new(),
            calls: 0,
            signatures: options.tools.iter().map(Signature::of).collect(),
            deltas: Vec::new(),
        };
        Self { splitter: TagSplitter::default(), reader }
    }

    /// Takes the next chunk of text and returns what is new. The chunk may end anywhere, within a tag too.
    pub fn push(&mut self, text: &str) -> Vec<Delta> {
        let Self { splitter, reader } = self;
        splitter.push(text, |token| reader.take(token));
        std::mem::take(&mut reader.deltas)
    }

    /// Ends the reply and returns what had been held back.
    #[must_use]
    pub fn finish(self) -> Vec<Delta> {
        let Self { splitter, mut reader } = self;
        reader.finish(&splitter.finish());
        reader.deltas
    }
}

/// Where in the reply the parser is.
#[derive(Debug, Clone)]
enum State {
    /// Outside of any marks.
    Answer { skip: Skip },
    /// Inside a thought. `name` counts how much of the channel's name has been seen, until that is decided.
    Thought { name: Option<usize> },
    /// Inside a call, with what it says so far.
    Call { text: String },
}

/// What goes away before the answer's next text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Skip {
    Nothing,
    /// After a thought: white space.
    Space,
    /// After a call: also the closing marks that models like to repeat.
    SpaceAndMarks,
}

/// The two kinds of text a reply has.
#[derive(Clone, Copy)]
enum Kind {
    Answer,
    Thought,
}

#[derive(Debug, Clone)]
struct Reader {
    state: State,
    think: bool,
    /// White space that ends the text so far. It belongs to the text if text follows.
    space: String,
    /// Calls understood so far.
    calls: u32,
    signatures: Vec<Signature>,
    deltas: Vec<Delta>,
}

impl Reader {
    fn take(&mut self, token: Token<'_>) {
        match token {
            Token::Text(text) => self.text(text),
            Token::Tag(tag) => self.tag(tag),
        }
    }

    fn text(&mut self, text: &str) {
        match &mut self.state {
            State::Answer { skip: Skip::Nothing } => self.emit(Kind::Answer, text),
            State::Answer { skip } => {
                let text = text.trim_start();
                if !text.is_empty() {
                    *skip = Skip::Nothing;
                    self.emit(Kind::Answer, text);
                }
            }
            State::Thought { name: None } => self.emit(Kind::Thought, text),
            State::Thought { name: Some(seen) } => {
                let missing = &THOUGHT[*seen..];
                if let Some(thought) = text.strip_prefix(missing) {
                    self.state = State::Thought { name: None };
                    self.emit(Kind::Thought, thought);
                } else if missing.starts_with(text) {
                    *seen += text.len();
                } else {
                    self.keep_channel_name();
                    self.emit(Kind::Thought, text);
                }
            }
            State::Call { text: call } => call.push_str(text),
        }
    }

    fn tag(&mut self, tag: Tag) {
        self.keep_channel_name();
        match (&self.state, tag) {
            (State::Answer { .. }, Tag::Channel) => self.enter(State::Thought { name: Some(0) }),
            (State::Answer { .. }, Tag::Call) => self.enter(State::Call { text: String::new() }),
            (State::Answer { skip: Skip::SpaceAndMarks }, Tag::EndCall | Tag::Response) => {}
            (State::Thought { .. }, Tag::EndChannel) => self.enter(State::Answer { skip: Skip::Space }),
            (State::Call { .. }, Tag::EndCall) => self.end_call(),
            // Where a tag has no meaning it is the model's words.
            _ => self.text(tag.text()),
        }
    }

    fn finish(&mut self, held: &str) {
        // The rest of a mark that would have gone away after a call goes away with it.
        let is_noise = matches!(self.state, State::Answer { skip: Skip::SpaceAndMarks })
            && [Tag::EndCall, Tag::Response].iter().any(|tag| tag.text().starts_with(held));
        if !is_noise {
            self.text(held);
        }
        self.keep_channel_name();
        match &self.state {
            State::Answer { .. } => self.flush_space(Kind::Answer),
            State::Thought { .. } => self.flush_space(Kind::Thought),
            State::Call { text } if text.is_empty() => {}
            State::Call { .. } => self.end_call(),
        }
    }

    /// Goes on in another state. White space before the tag is dropped.
    fn enter(&mut self, state: State) {
        self.space.clear();
        self.state = state;
    }

    /// Decides that what was seen of a channel's name is thought: what follows is not the rest of the name.
    fn keep_channel_name(&mut self) {
        if let State::Thought { name: name @ Some(_) } = &mut self.state
            && let Some(seen) = name.take()
        {
            self.emit(Kind::Thought, &THOUGHT[..seen]);
        }
    }

    fn end_call(&mut self) {
        let after = State::Answer { skip: Skip::SpaceAndMarks };
        let State::Call { text } = std::mem::replace(&mut self.state, after) else { return };
        match parse_call(&text, &self.signatures) {
            Ok(mut call) => {
                call.function.index = Some(self.calls);
                self.calls += 1;
                self.deltas.push(Delta::Call(call));
            }
            Err(error) => self.deltas.push(Delta::MalformedCall { text, error }),
        }
    }

    /// Sends text on, holding back white space at its end.
    fn emit(&mut self, kind: Kind, text: &str) {
        let solid = text.trim_end();
        if !solid.is_empty() {
            self.flush_space(kind);
            self.deliver(kind, solid);
        }
        self.space.push_str(&text[solid.len()..]);
    }

    fn flush_space(&mut self, kind: Kind) {
        let mut space = std::mem::take(&mut self.space);
        self.deliver(kind, &space);
        space.clear();
        self.space = space;
    }

    fn deliver(&mut self, kind: Kind, text: &str) {
        if text.is_empty() {
            return;
        }
        match (kind, self.deltas.last_mut()) {
            (Kind::Thought, _) if !self.think => {}
            (Kind::Answer, Some(Delta::Answer(last))) | (Kind::Thought, Some(Delta::Thought(last))) => {
                last.push_str(text);
            }
            (Kind::Answer, _) => self.deltas.push(Delta::Answer(text.to_owned())),
            (Kind::Thought, _) => self.deltas.push(Delta::Thought(text.to_owned())),
        }
    }
}

/// A reply put together from its deltas.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ReplyParts {
    /// The answer.
    pub answer: String,
    /// The thought before it.
    pub thought: String,
    /// The calls, in order.
    pub calls: Vec<ToolCall>,
    /// The texts of calls that could not be understood, with what is wrong with them.
    pub malformed: Vec<(String, ChatError)>,
}

impl ReplyParts {
    /// Adds the next delta.
    pub fn push(&mut self, delta: Delta) {
        match delta {
            Delta::Answer(text) => self.answer.push_str(&text),
            Delta::Thought(text) => self.thought.push_str(&text),
            Delta::Call(call) => self.calls.push(call),
            Delta::MalformedCall { text, error } => self.malformed.push((text, error)),
        }
    }

    /// The reply as a message, for the history of the conversation.
    #[must_use]
    pub fn into_message(self) -> Message {
        Message {
            thinking: Some(self.thought).filter(|thought| !thought.is_empty()),
            tool_calls: self.calls,
            ..Message::assistant(self.answer)
        }
    }
}

impl Extend<Delta> for ReplyParts {
    fn extend<T: IntoIterator<Item = Delta>>(&mut self, deltas: T) {
        deltas.into_iter().for_each(|delta| self.push(delta));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thinking() -> ReplyParser {
        ReplyParser::new(ReplyOptions { think: true, ..ReplyOptions::default() })
    }

    #[test]
    fn text_is_not_held_longer_than_it_must_be() {
        let answer = |text: &str| vec![Delta::Answer(text.to_owned())];
        let thought = |text: &str| vec![Delta::Thought(text.to_owned())];
        let mut parser = thinking();
        assert_eq!(parser.push("<|chan"), []);
        assert_eq!(parser.push("nel>thou"), []);
        assert_eq!(parser.push("ght\nOne "), thought("One"));
        assert_eq!(parser.push("two\n"), thought(" two"));
        assert_eq!(parser.push("<channel|"), []);
        assert_eq!(parser.push(">\n"), []);
        assert_eq!(parser.push(" Hi"), answer("Hi"));
        assert_eq!(parser.push(" <|tool"), []);
        assert_eq!(parser.push("box> "), answer(" <|toolbox>"));
        assert_eq!(parser.push("<"), []);
        assert_eq!(parser.finish(), answer(" <"));
    }

    /// A reply of 256 KiB that comes one character at a time, in every state that holds text back. Were anything
    /// looked at again with every character, this would not end before the test runner gives up.
    #[test]
    fn long_replies_are_read_once() {
        const LONG: usize = 1 << 18;
        let properties = serde_json::json!({"properties": {"a": {"type": "string"}}});
        let tools = [Tool::function("f", "", properties)];
        for (head, body) in [
            ("", " "),
            ("a", "<"),
            ("<|channel>", " "),
            ("<|channel>thought\n", "a "),
            ("<|tool_call>call:f{a:", "\\\""),
            ("<|tool_call>call:f{a:", "<|\"|>"),
            ("<|tool_call>call:f{", "{"),
            ("<|tool_call>call:f{a:", ":'\\'"),
            ("<|tool_call>call:f{a", ",a"),
            ("<|tool_call>call:f{", ", "),
            ("<|tool_call>call:f{}<tool_call|>", " "),
            ("<|tool_call>call:f{}<tool_call|>", "<tool_call|>"),
        ] {
            let mut whole = ReplyParts::default();
            let mut pieces = ReplyParts::default();
            let options = ReplyOptions { think: true, thought_open: false, tools: &tools };
            let reply: String = head.chars().chain(body.chars().cycle().take(LONG)).collect();
            let mut parser = ReplyParser::new(options);
            whole.extend(parser.push(&reply));
            whole.extend(parser.finish());
            let mut parser = ReplyParser::new(options);
            let mut buffer = [0; 4];
            for character in reply.chars() {
                pieces.extend(parser.push(character.encode_utf8(&mut buffer)));
            }
            pieces.extend(parser.finish());
            assert!(whole == pieces, "{head}{body}…");
        }
    }
}
