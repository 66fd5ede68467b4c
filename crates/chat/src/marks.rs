//! The texts of the special tokens that prompts are written with and replies are parsed by.

pub(crate) const BEGIN: &str = "<bos>";
pub(crate) const TURN: &str = "<|turn>";
pub(crate) const END_TURN: &str = "<turn|>\n";
pub(crate) const THINK: &str = "<|think|>\n";

pub(crate) const CHANNEL: &str = "<|channel>";
pub(crate) const END_CHANNEL: &str = "<channel|>";
/// The name of the one channel models use, as it follows [`CHANNEL`].
pub(crate) const THOUGHT: &str = "thought\n";

pub(crate) const TOOL: &str = "<|tool>";
pub(crate) const END_TOOL: &str = "<tool|>";
pub(crate) const CALL: &str = "<|tool_call>";
pub(crate) const END_CALL: &str = "<tool_call|>";
pub(crate) const RESPONSE: &str = "<|tool_response>";
pub(crate) const END_RESPONSE: &str = "<tool_response|>";

/// Delimits a string on both sides. Nothing between two of these is escaped.
pub(crate) const QUOTE: &str = "<|\"|>";
