//! What can go wrong on a GPU.

use rullama_gguf::{FormatError, SourceError};

/// Why a model could not be loaded onto a GPU, or a step not be computed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// There is no GPU that can be used.
    #[error("no GPU adapter was found: {reason}")]
    NoAdapter {
        /// What the system said.
        reason: String,
    },

    /// The GPU was found but cannot be opened.
    #[error("the GPU `{name}` cannot be opened: {reason}")]
    NoDevice {
        /// The adapter.
        name: String,
        /// What the system said.
        reason: String,
    },

    /// The GPU is gone, or failed in a way that it cannot go on from.
    #[error("the GPU was lost: {reason}")]
    Lost {
        /// What the system said.
        reason: String,
    },

    /// Weights could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),

    /// Weights could not be decoded.
    #[error("tensor `{tensor}` cannot be decoded")]
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

    /// One row, or one cache, is larger than the GPU can bind.
    #[error("{what} needs {bytes} bytes in one binding; the GPU allows {limit}")]
    TooLarge {
        /// What is too large.
        what: String,
        /// Its size.
        bytes: u64,
        /// The largest binding.
        limit: u64,
    },

    /// An operation that has no kernel yet.
    #[error("`{operation}` cannot be computed on the GPU yet")]
    Unsupported {
        /// The operation.
        operation: &'static str,
    },

    /// A token outside of the vocabulary.
    #[error("token {id} does not exist; the vocabulary has {vocabulary}")]
    UnknownToken {
        /// The token.
        id: u32,
        /// Size of the vocabulary.
        vocabulary: u32,
    },

    /// A logit is not a number: the step that made it went wrong.
    #[error("a logit of the step after {cached} tokens is not a number")]
    NotANumber {
        /// Tokens before the step.
        cached: usize,
    },

    /// Every token is ruled out, by the model, by its bias or because it is suppressed.
    #[error("no token of {vocabulary} is left to choose from")]
    NothingLeft {
        /// Size of the vocabulary.
        vocabulary: u32,
    },

    /// More tokens than the caches have room for, or none.
    #[error("a step of {rows} tokens after {cached} was asked for; the context holds {context}")]
    StepSize {
        /// Tokens of the step.
        rows: usize,
        /// Tokens cached.
        cached: usize,
        /// Tokens that fit.
        context: usize,
    },
}

impl GpuError {
    /// A short string for this kind of failure that stays the same between versions.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoAdapter { .. } | Self::NoDevice { .. } => "device.unavailable",
            Self::Lost { .. } => "device.lost",
            Self::Source(error) => error.code(),
            Self::Format { source, .. } => source.code(),
            Self::MissingTensor { .. } => "model.missing_tensor",
            Self::TooLarge { .. } => "memory.too_large",
            Self::Unsupported { .. } => "model.unsupported",
            Self::UnknownToken { .. } => "input.unknown_token",
            Self::NotANumber { .. } => "sample.not_finite",
            Self::NothingLeft { .. } => "sample.all_suppressed",
            Self::StepSize { .. } => "context.overflow",
        }
    }
}
