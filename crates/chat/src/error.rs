//! What can be wrong with a request or with a tool call the model wrote.

/// Why a message, a tool or a tool call could not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// A text that should be JSON is not.
    #[error("`{at}` is not JSON: {reason}")]
    InvalidJson {
        /// Where it is in the request, such as `messages[2].tool_calls[0].function.arguments`.
        at: String,
        /// What the JSON parser says, with line and column.
        reason: String,
    },

    /// A field holds another kind of value than it must.
    #[error("`{at}` is {found} (expected {expected})")]
    WrongType {
        /// Where it is in the request.
        at: String,
        /// The kind of value found, such as "a number".
        found: &'static str,
        /// The kind of value that would do.
        expected: &'static str,
    },

    /// A field is missing that cannot be filled in.
    #[error("`{at}` is missing")]
    MissingField {
        /// Where it should be.
        at: String,
    },

    /// Arguments or a schema are nested more deeply than any JSON text this crate would read.
    #[error("{what} is nested more than {limit} levels deep")]
    TooDeep {
        /// Whose value it is, such as "the schema of tool `search`".
        what: String,
        /// How many levels are accepted.
        limit: usize,
    },

    /// A request asks for a level of thinking that does not exist.
    #[error("think level `{found}` does not exist (expected low, medium, high or max)")]
    UnknownThinkLevel {
        /// The level asked for.
        found: String,
    },

    /// The text of a tool call does not begin with `call:`.
    #[error("the tool call does not begin with `call:`")]
    CallWithoutPrefix,

    /// A tool call has no `{`, so there is no telling where its name ends.
    #[error("the tool call has no arguments")]
    CallWithoutArguments,

    /// A tool call names no tool.
    #[error("the tool call has no name")]
    CallWithoutName,

    /// A tool call's arguments are not an object, and no repair made them one.
    #[error("the arguments of the call to `{name}` are not valid: {reason}")]
    CallArguments {
        /// The tool called.
        name: String,
        /// What the JSON parser says of the arguments as the model wrote them, converted to JSON.
        reason: String,
    },
}

impl ChatError {
    /// A stable name for the kind of error: the contract for JavaScript and HTTP.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidJson { .. } => "chat.invalid_json",
            Self::WrongType { .. } => "chat.wrong_type",
            Self::MissingField { .. } => "chat.missing_field",
            Self::TooDeep { .. } => "chat.too_deep",
            Self::UnknownThinkLevel { .. } => "chat.unknown_think_level",
            Self::CallWithoutPrefix
            | Self::CallWithoutArguments
            | Self::CallWithoutName
            | Self::CallArguments { .. } => "chat.malformed_call",
        }
    }
}
