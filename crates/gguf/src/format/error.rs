//! What can go wrong between a format, its bytes and its values.

use thiserror::Error;

use super::Format;

/// A type id in a file that names no format this crate can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UnknownFormat {
    /// The id once named a format, which ggml has since removed.
    #[error("tensor type {id} was removed from ggml")]
    Removed {
        /// The id found.
        id: u32,
    },
    /// The id never named a format that this crate knows.
    #[error("tensor type {id} is unknown (expected at most {})", Format::LAST_ID)]
    Unknown {
        /// The id found.
        id: u32,
    },
}

impl UnknownFormat {
    /// A stable name for the kind of failure.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Removed { .. } => "format.removed",
            Self::Unknown { .. } => "format.unknown",
        }
    }

    /// The id found.
    pub const fn id(&self) -> u32 {
        match *self {
            Self::Removed { id } | Self::Unknown { id } => id,
        }
    }
}

/// A text that is not the name of a format.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("format `{name}` is unknown (expected a name such as Q4_K or F16)")]
pub struct UnknownFormatName {
    /// The text found.
    pub name: String,
}

impl UnknownFormatName {
    /// A stable name for the kind of failure.
    pub const fn code(&self) -> &'static str {
        "format.unknown_name"
    }
}

/// Bytes and values that do not fit each other, or a direction that a format does not offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The bytes to decode are not a whole number of blocks.
    #[error("can't decode {format}: got {found} bytes (expected a multiple of {block_bytes})")]
    PartialBlock {
        /// The format asked for.
        format: Format,
        /// How many bytes there were.
        found: usize,
        /// How many bytes one block has.
        block_bytes: usize,
    },
    /// The values to encode are not a whole number of blocks.
    #[error("can't encode {format}: got {found} values (expected a multiple of {block_len})")]
    PartialBlockOfValues {
        /// The format asked for.
        format: Format,
        /// How many values there were.
        found: usize,
        /// How many values one block has.
        block_len: usize,
    },
    /// The blocks hold another number of values than the caller has room for.
    #[error("can't decode {format}: the output has room for {found} values (expected {expected})")]
    WrongValueCount {
        /// The format asked for.
        format: Format,
        /// How many values the output holds.
        found: usize,
        /// How many values the blocks hold.
        expected: usize,
    },
    /// The values need another number of bytes than the caller has room for.
    #[error("can't encode {format}: the output has room for {found} bytes (expected {expected})")]
    WrongByteCount {
        /// The format asked for.
        format: Format,
        /// How many bytes the output holds.
        found: usize,
        /// How many bytes the values need.
        expected: usize,
    },
    /// The format can be read but not written.
    #[error("can't encode {format}: rullama only reads this format (it writes {})", Encodable)]
    CannotEncode {
        /// The format asked for.
        format: Format,
    },
}

impl FormatError {
    /// A stable name for the kind of failure.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::PartialBlock { .. } | Self::PartialBlockOfValues { .. } => "format.partial_block",
            Self::WrongValueCount { .. } | Self::WrongByteCount { .. } => "format.wrong_length",
            Self::CannotEncode { .. } => "format.cannot_encode",
        }
    }
}

/// Lists the formats that can be encoded, so that the message cannot fall behind the code.
struct Encodable;

impl std::fmt::Display for Encodable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut separator = "";
        for format in Format::ALL.iter().filter(|format| format.can_encode()) {
            write!(f, "{separator}{format}")?;
            separator = ", ";
        }
        Ok(())
    }
}
