//! The Gemma 4 chat format: conversations become prompts, and what the model writes becomes an answer,
//! a thought and tool calls. Prompts are the ones Ollama renders for the same request, character by
//! character, because that is what the published models are served with.
//!
//! # The format
//!
//! A prompt is `<bos>` and a list of turns, `<|turn>ROLE⏎ … <turn|>⏎`, ending in an open `model` turn that
//! the model continues. Inside turns, paired marks set apart what is not plain text:
//!
//! | marks | inside |
//! |---|---|
//! | `<\|channel>thought⏎ … <channel\|>` | what the model thinks before it answers |
//! | `<\|tool> … <tool\|>` | the declaration of a tool, in the system turn |
//! | `<\|tool_call> … <tool_call\|>` | a call: `call:NAME{key:value,…}` |
//! | `<\|tool_response> … <tool_response\|>` | its result: `response:NAME{value:…}` |
//! | `<\|"\|> … <\|"\|>` | a string within the three above; nothing in it is escaped |
//!
//! `<|think|>` at the head of the system turn asks for thinking. Small and large models differ in one thing:
//! with thinking off, a large model's prompt ends with an empty thought ([`PromptStyle`]).
//!
//! # From messages to a prompt
//!
//! Messages and tools have the JSON shape of Ollama's `/api/chat` and are read leniently. [`render`] makes
//! the prompt, as text and as pieces: attached media are tags in the text and pieces of their own, so that
//! an engine can put soft tokens in their place.
//!
//! ```
//! use rullama_chat::{Conversation, Message, Piece, PromptStyle, render};
//!
//! let messages = [
//!     Message::system("Be brief."),
//!     Message { images: vec!["iVBORw0KGgo=".into()], ..Message::user("What is this?") },
//! ];
//! let conversation = Conversation { messages: &messages, tools: &[], think: false };
//! let prompt = render(&conversation, PromptStyle::Small)?;
//!
//! assert_eq!(
//!     prompt.to_string(),
//!     "<bos><|turn>system\nBe brief.<turn|>\n<|turn>user\n[img-0] What is this?<turn|>\n<|turn>model\n"
//! );
//! assert_eq!(prompt.pieces[1], Piece::Media { index: 0 });
//! # Ok::<(), rullama_chat::ChatError>(())
//! ```
//!
//! # From a reply to its parts
//!
//! [`ReplyParser`] reads the reply while it is written. However the text is cut into chunks, the parts are
//! the same.
//!
//! ```
//! use rullama_chat::{ReplyOptions, ReplyParser, ReplyParts};
//!
//! let mut parser = ReplyParser::new(ReplyOptions { think: true, ..ReplyOptions::default() });
//! let mut parts = ReplyParts::default();
//! for chunk in ["<|channel>thought\nA town", ".\n<chan", "nel|>Let me look. <|tool_call>call:weather{city:",
//!     "<|\"|>Paris<|\"|>,days:2}<tool_call|>"]
//! {
//!     parts.extend(parser.push(chunk));
//! }
//! parts.extend(parser.finish());
//!
//! assert_eq!(parts.thought, "A town.");
//! assert_eq!(parts.answer, "Let me look.");
//! assert_eq!(parts.calls[0].function.name, "weather");
//! assert_eq!(parts.calls[0].function.arguments["days"], 2);
//! ```

mod call;
mod convert;
mod declaration;
mod error;
mod json;
mod marks;
mod message;
mod prompt;
mod prompt_style;
mod render;
mod repair;
mod reply;
mod tags;
mod think;
mod tool;
mod value;

pub use error::ChatError;
pub use message::{Message, Role, parse_messages};
pub use prompt::{MediaSource, Piece, Prompt};
pub use prompt_style::PromptStyle;
pub use render::{Conversation, render};
pub use reply::{Delta, ReplyOptions, ReplyParser, ReplyParts};
pub use think::Think;
pub use tool::{FunctionCall, Tool, ToolCall, ToolFunction, parse_tools};
