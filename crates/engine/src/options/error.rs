//! What can be wrong with an option, and what is merely worth saying about it.

use std::fmt;

/// Why options could not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionError {
    /// An option holds another kind of value than it must.
    #[error("option `{option}` is {found} (expected {expected})")]
    WrongType {
        /// The option, with the place inside it where it has parts, such as `stop[1]`.
        option: String,
        /// The kind of value found, such as "a string".
        found: &'static str,
        /// The kind of value that would do.
        expected: &'static str,
    },

    /// An option holds a number outside of its [`OptionRange`](super::OptionRange).
    #[error("option `{option}` is {found} (expected {expected})")]
    OutOfRange {
        /// The option, with the place inside it where it has parts.
        option: String,
        /// The value found.
        found: String,
        /// The values that the option may have.
        expected: String,
    },

    /// There is no such option, where nobody would hear of an [`OptionWarning`].
    #[error("option `{option}` does not exist")]
    Unknown {
        /// The name found.
        option: String,
    },
}

impl OptionError {
    /// A stable name for the kind of error: the contract for JavaScript and HTTP.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::WrongType { .. } => "option.wrong_type",
            Self::OutOfRange { .. } => "option.out_of_range",
            Self::Unknown { .. } => "option.unknown",
        }
    }
}

/// An option that was passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionWarning {
    /// There is no such option.
    Unknown {
        /// The name found.
        option: String,
    },

    /// Ollama has this option, and it changes nothing here.
    NotUsed {
        /// The name found.
        option: String,
    },
}

impl OptionWarning {
    /// The option it is about.
    #[must_use]
    pub fn option(&self) -> &str {
        match self {
            Self::Unknown { option } | Self::NotUsed { option } => option,
        }
    }
}

impl fmt::Display for OptionWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { option } => write!(f, "option `{option}` does not exist; it is ignored"),
            Self::NotUsed { option } => {
                write!(f, "option `{option}` has no effect in rullama; it is ignored")
            }
        }
    }
}
