//! What can be wrong with a metadata value.

use crate::ValueType;

/// Why a metadata value could not be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// A required key is not in the file.
    #[error("metadata key `{key}` is missing (expected {expected})")]
    Missing {
        /// The key.
        key: String,
        /// What should be there.
        expected: &'static str,
    },

    /// A key has a value of another type.
    #[error("metadata key `{key}` is {found} (expected {expected})")]
    WrongType {
        /// The key.
        key: String,
        /// The type in the file.
        found: ValueType,
        /// What should be there.
        expected: &'static str,
    },

    /// A number does not fit.
    #[error("metadata key `{key}` is {found} (expected {expected})")]
    OutOfRange {
        /// The key.
        key: String,
        /// The number in the file.
        found: String,
        /// What should be there.
        expected: &'static str,
    },

    /// A string is not text.
    #[error("metadata key `{key}` is not UTF-8")]
    NotUtf8 {
        /// The key.
        key: String,
    },

    /// An array has the wrong number of elements.
    #[error("metadata key `{key}` has {found} elements (expected {expected})")]
    WrongLength {
        /// The key.
        key: String,
        /// Elements in the file.
        found: u64,
        /// Elements needed.
        expected: u64,
    },
}

impl MetadataError {
    /// A short string for this kind of failure that stays the same between versions.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "metadata.missing",
            Self::WrongType { .. } => "metadata.type",
            Self::OutOfRange { .. } => "metadata.range",
            Self::NotUtf8 { .. } => "metadata.utf8",
            Self::WrongLength { .. } => "metadata.length",
        }
    }
}
