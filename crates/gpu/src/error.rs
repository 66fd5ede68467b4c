//! What can go wrong on a GPU.

use rullama_gguf::{FormatError, SourceError};

use crate::{Bound, Budget, SelfTestResult, budget::Size};

/// Why a model could not be loaded onto the GPU, or a step could not be computed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// There is no GPU that can be used.
    #[error("no GPU found: {reason}")]
    NoAdapter {
        /// What the system said.
        reason: String,
    },

    /// The GPU was found but cannot be opened.
    #[error("the GPU `{name}` can't be opened: {reason}")]
    NoDevice {
        /// The adapter.
        name: String,
        /// What the system said.
        reason: String,
    },

    /// The GPU is gone, or failed so badly that the device can't be used any more.
    #[error("the GPU was lost: {reason}")]
    Lost {
        /// What the system said.
        reason: String,
    },

    /// The conversation lost its slot of the cache pool to another one, and has to be read again.
    #[error("the conversation made room for another one and has to be read again")]
    Evicted,

    /// A row made by a tower has another width than the model's rows.
    #[error("a soft row has {found} columns; {expected} were expected")]
    SoftWidth {
        /// Its columns.
        found: usize,
        /// The model's.
        expected: usize,
    },

    /// Rows that should see each other are none, are not all in the step, or belong to two spans.
    #[error(
        "the span {start}..{end} of a step of {rows} rows is empty, overlaps another or ends after the last row"
    )]
    WrongSpan {
        /// Its first row.
        start: usize,
        /// The row after its last.
        end: usize,
        /// Rows of the step.
        rows: usize,
    },

    /// A graph was run without one of its inputs.
    #[error("the graph was run without its input `{input}`")]
    MissingInput {
        /// The input.
        input: String,
    },

    /// An input has no rows, part of a row, or another number of rows than other inputs of its domain.
    #[error("input `{input}` has {values} values, which are not its rows of {width}")]
    WrongInput {
        /// The input.
        input: String,
        /// Its values.
        values: usize,
        /// Columns that its rows should have.
        width: usize,
    },

    /// An input has more rows than a GPU computes at once.
    #[error("input `{input}` has {rows} rows, but at most {most} are computed at once")]
    TooManyRows {
        /// The input.
        input: String,
        /// Its rows.
        rows: usize,
        /// The most rows.
        most: usize,
    },

    /// An infinite number, or none (NaN), in an output of an encoder.
    #[error("the model computed a value that is not finite (output `{output}`)")]
    NotFiniteOutput {
        /// The output.
        output: String,
    },

    /// The GPU rejected a command, because of a bug in rullama or in the driver.
    #[error("the GPU rejected a command: {reason}")]
    Refused {
        /// What the system said.
        reason: String,
    },

    /// Even the simplest kernels give wrong results.
    #[error("the GPU gives wrong results: {}", failed.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Unreliable {
        /// The cases whose answers are wrong.
        failed: Vec<SelfTestResult>,
    },

    /// The model does not fit. This is known before anything is allocated.
    #[error(
        "{}; {}",
        bound.describe(budget),
        largest_context.map_or("no context fits".to_owned(), |context| format!("a context of {context} fits"))
    )]
    OutOfBudget {
        /// What the model needs.
        budget: Budget,
        /// What it does not fit.
        bound: Bound,
        /// The largest context that fits, if any does.
        largest_context: Option<u32>,
    },

    /// The GPU has no memory left.
    #[error("not enough GPU memory for {what}{}", bytes.map_or(String::new(), |bytes| format!(": {}", Size(bytes))))]
    OutOfMemory {
        /// What was to be allocated.
        what: String,
        /// Its size, where that is known.
        bytes: Option<u64>,
    },

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

    /// A tower needs more memory than the model leaves.
    #[error(
        "reading this image or sound needs {} of GPU memory beside the model, but only {} is allowed",
        Size(*.bytes),
        Size(*.allowed)
    )]
    EncoderTooLarge {
        /// Bytes of its weights and values.
        bytes: u64,
        /// Bytes that it may take.
        allowed: u64,
    },

    /// One row, or one cache, is larger than the GPU can bind.
    #[error("{what} needs {bytes} bytes in one binding, but this GPU allows {limit}")]
    TooLarge {
        /// What is too large.
        what: String,
        /// Its size.
        bytes: u64,
        /// The largest binding.
        limit: u64,
    },

    /// An operation that has no kernel yet.
    #[error("rullama can't compute `{operation}` on the GPU yet")]
    Unsupported {
        /// The operation.
        operation: &'static str,
    },

    /// A token outside of the vocabulary.
    #[error("token {id} does not exist (the vocabulary has {vocabulary} tokens)")]
    UnknownToken {
        /// The token.
        id: u32,
        /// Size of the vocabulary.
        vocabulary: u32,
    },

    /// An infinite number, or none (NaN), among the results: damaged weights, or activations that overflowed.
    #[error("the model computed a value that is not finite (`{value}`, after {tokens} tokens)")]
    NotFinite {
        /// The value in which it was found.
        value: &'static str,
        /// Tokens read when it was found.
        tokens: usize,
    },

    /// Every token is ruled out, by the model, by its bias or because it is suppressed.
    #[error("all {vocabulary} tokens are ruled out, so none can be chosen")]
    NothingLeft {
        /// Size of the vocabulary.
        vocabulary: u32,
    },

    /// More tokens than the caches have room for, or none.
    #[error("a step of {rows} tokens after {cached} does not fit in a context of {context}")]
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
            Self::Evicted => "conversation.evicted",
            Self::SoftWidth { .. } => "input.soft_width",
            Self::MissingInput { .. } => "input.missing",
            Self::WrongInput { .. } | Self::WrongSpan { .. } | Self::TooManyRows { .. } => "input.shape",
            Self::Refused { .. } => "device.refused",
            Self::Unreliable { .. } => "device.unreliable",
            Self::OutOfMemory { .. } => "memory.exhausted",
            Self::Source(error) => error.code(),
            Self::Format { source, .. } => source.code(),
            Self::MissingTensor { .. } => "model.missing_tensor",
            Self::TooLarge { .. } | Self::EncoderTooLarge { .. } | Self::OutOfBudget { .. } => {
                "memory.too_large"
            }
            Self::Unsupported { .. } => "model.unsupported",
            Self::UnknownToken { .. } => "input.unknown_token",
            Self::NotFinite { .. } | Self::NotFiniteOutput { .. } => "model.not_finite",
            Self::NothingLeft { .. } => "sample.all_suppressed",
            Self::StepSize { .. } => "context.overflow",
        }
    }
}
