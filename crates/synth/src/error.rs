//! Everything that can go wrong.

use rullama_gguf::{FormatError, WriteError};

/// Why a model could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SynthError {
    /// A name that no preset has.
    #[error("preset `{name}` does not exist (expected one of {expected})")]
    UnknownPreset {
        /// The name asked for.
        name: String,
        /// The names there are.
        expected: String,
    },

    /// A vocabulary of a size for which none can be made.
    #[error("a vocabulary can't have {found} tokens (expected {smallest} to {largest})")]
    Vocabulary {
        /// The size asked for.
        found: u32,
        /// The fewest tokens that hold all special, byte and ASCII tokens.
        smallest: u32,
        /// The most tokens for which there are distinct texts.
        largest: u32,
    },

    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),

    /// Values could not be encoded.
    #[error(transparent)]
    Format(#[from] FormatError),
}

impl SynthError {
    /// A short string for this kind of failure that stays the same between versions.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownPreset { .. } => "synth.preset",
            Self::Vocabulary { .. } => "synth.vocabulary",
            Self::Write(error) => error.code(),
            Self::Format(error) => error.code(),
        }
    }
}

/// Names as a list in a sentence.
pub(crate) fn listed(names: impl IntoIterator<Item = &'static str>) -> String {
    names.into_iter().collect::<Vec<_>>().join(", ")
}
