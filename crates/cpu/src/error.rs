//! Why a step could not be computed.

use rullama_gguf::{FormatError, SourceError};

/// Why a step could not be computed. Codes are those of the reference's errors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CpuError {
    /// Weights could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),

    /// Weights could not be decoded.
    #[error("tensor `{tensor}` can't be decoded")]
    Format {
        /// The tensor.
        tensor: String,
        /// What is wrong.
        source: FormatError,
    },

    /// The graph names a tensor that the model does not have.
    #[error("tensor `{tensor}` is missing")]
    MissingTensor {
        /// The tensor.
        tensor: String,
    },

    /// A token outside of the vocabulary.
    #[error("token {id} does not exist (the vocabulary has {vocabulary} tokens)")]
    UnknownToken {
        /// The token.
        id: u32,
        /// Size of the vocabulary.
        vocabulary: u32,
    },

    /// A soft row of the wrong width.
    #[error("an embedding row has {found} columns (expected {expected})")]
    SoftWidth {
        /// Its columns.
        found: usize,
        /// The model's.
        expected: usize,
    },

    /// An input of the graph that the step was not given.
    #[error("the step has no input `{input}`")]
    MissingInput {
        /// The input.
        input: String,
    },

    /// An input of another shape than the graph's, or with other rows than the inputs beside it.
    #[error("input `{input}` of {values} values does not fit the graph")]
    WrongInput {
        /// The input.
        input: String,
        /// Its values.
        values: usize,
    },

    /// There is no memory for a step.
    #[error("not enough memory for a step of {rows} tokens after {cached}: it needs {bytes} bytes")]
    OutOfMemory {
        /// Tokens of the step.
        rows: usize,
        /// Tokens cached before it.
        cached: usize,
        /// Bytes that the step needs: its values, and what it adds to the caches.
        bytes: u64,
    },

    /// A step without tokens.
    #[error("a step needs at least one token")]
    EmptyStep,

    /// An infinite number, or none (NaN), among the results: damaged weights, or activations that overflowed.
    #[error("the model computed a value that is not finite (`{value}`, after {tokens} tokens)")]
    NotFinite {
        /// The first value in which it was found.
        value: String,
        /// Tokens read when it was found, that of its row included.
        tokens: usize,
    },
}

impl CpuError {
    /// A short string for this kind of failure that stays the same between versions.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Source(error) => error.code(),
            Self::Format { source, .. } => source.code(),
            Self::MissingTensor { .. } => "model.missing_tensor",
            Self::UnknownToken { .. } => "input.unknown_token",
            Self::SoftWidth { .. } => "input.soft_width",
            Self::MissingInput { .. } => "input.missing",
            Self::WrongInput { .. } => "input.shape",
            Self::OutOfMemory { .. } => "memory.exhausted",
            Self::EmptyStep => "input.empty",
            Self::NotFinite { .. } => "model.not_finite",
        }
    }
}
