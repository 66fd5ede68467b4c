//! Errors of converting a checkpoint.

use std::{fmt, io, path::PathBuf};

use rullama_gguf::{Format, FormatError, WriteError};

/// Why a checkpoint could not be converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// A file that every checkpoint has is not in the folder.
    #[error("`{}` is missing", path.display())]
    MissingFile {
        /// Where it was looked for.
        path: PathBuf,
    },

    /// A file is there and cannot be read.
    #[error("`{}` can't be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },

    /// A file that is larger than any of its kind.
    #[error("`{}` has {found} bytes (expected at most {limit})", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        found: u64,
        /// The largest that is read.
        limit: u64,
    },

    /// A file that is not the JSON it should be.
    #[error("`{}` is not valid", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },

    /// A model of another family.
    #[error("this is a checkpoint of architecture `{found}` (expected one of {expected})")]
    Architecture {
        /// What the configuration says.
        found: String,
        /// What can be converted.
        expected: String,
    },

    /// Weights that were quantised for another engine.
    #[error("the checkpoint is already quantised, by `{method}`")]
    Quantised {
        /// The method that the configuration names.
        method: String,
    },

    /// A value of the configuration that no Gemma 4 model has.
    #[error("`{key}` in config.json is {found} (expected {expected})")]
    Config {
        /// The key.
        key: &'static str,
        /// Its value.
        found: String,
        /// What would be right.
        expected: &'static str,
    },

    /// A file of weights whose header makes no sense.
    #[error("`{}` is not a valid safetensors file: {reason}", path.display())]
    Safetensors {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// A file of weights with fewer or more bytes than its header says.
    #[error("`{}` has {found} bytes, but its header describes {expected}", path.display())]
    WrongLength {
        /// The file.
        path: PathBuf,
        /// Its size.
        found: u64,
        /// What the header says.
        expected: u64,
    },

    /// A name that two files of weights have.
    #[error("tensor `{name}` is in two files, `{first}` and `{second}`")]
    RepeatedTensor {
        /// The tensor.
        name: String,
        /// One file.
        first: String,
        /// Another.
        second: String,
    },

    /// A tensor that the configuration asks for.
    #[error("tensor `{name}` is missing; the model cannot run without it")]
    MissingTensor {
        /// Its name in the checkpoint.
        name: String,
    },

    /// Tensors that no Gemma 4 model has.
    #[error("tensor `{name}` is not part of any Gemma 4 model{}", and_others(*others))]
    UnknownTensor {
        /// The first of them.
        name: String,
        /// How many there are besides.
        others: usize,
    },

    /// A tensor whose shape differs from what the configuration says.
    #[error("tensor `{name}` has shape {found}, but config.json asks for {expected}")]
    WrongShape {
        /// Its name in the checkpoint.
        name: String,
        /// Its shape.
        found: TensorShape,
        /// What the configuration says.
        expected: TensorShape,
    },

    /// A tensor whose values are no plain floating point.
    #[error("tensor `{name}` has type {found} (expected F32, F16 or BF16)")]
    WrongType {
        /// Its name in the checkpoint.
        name: String,
        /// The type of its values.
        found: String,
    },

    /// A tokenizer that cannot be expressed as Gemma 4's.
    #[error("the tokenizer can't be converted: {reason}")]
    Tokenizer {
        /// What is wrong with it.
        reason: String,
    },

    /// The configuration and the tokenizer disagree about a token.
    #[error("`{key}` is {id}, which is `{found}` in the tokenizer (expected `{expected}`)")]
    TokenId {
        /// The key of the configuration.
        key: &'static str,
        /// Its value.
        id: u32,
        /// The text of that token.
        found: String,
        /// The text that it should have.
        expected: &'static str,
    },

    /// A rule that no tensor follows.
    #[error("no tensor matches `{pattern}`")]
    UnusedRule {
        /// The pattern.
        pattern: String,
    },

    /// A format that is only read.
    #[error("{format} can't be written (expected one of {expected})")]
    CannotEncode {
        /// The format asked for.
        format: Format,
        /// Those that can.
        expected: String,
    },

    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),

    /// Values could not be encoded.
    #[error(transparent)]
    Format(#[from] FormatError),
}

impl ConvertError {
    /// A short string for this kind of failure that stays the same between versions.
    pub fn code(&self) -> &'static str {
        match self {
            Self::MissingFile { .. } => "convert.file.missing",
            Self::Read { .. } => "convert.file.io",
            Self::TooLarge { .. } | Self::Json { .. } => "convert.file.invalid",
            Self::Architecture { .. } => "convert.architecture",
            Self::Quantised { .. } => "convert.quantised",
            Self::Config { .. } => "convert.config",
            Self::Safetensors { .. } | Self::WrongLength { .. } | Self::RepeatedTensor { .. } => {
                "convert.weights"
            }
            Self::MissingTensor { .. } => "convert.tensor.missing",
            Self::UnknownTensor { .. } => "convert.tensor.unknown",
            Self::WrongShape { .. } => "convert.tensor.shape",
            Self::WrongType { .. } => "convert.tensor.type",
            Self::Tokenizer { .. } | Self::TokenId { .. } => "convert.tokenizer",
            Self::UnusedRule { .. } | Self::CannotEncode { .. } => "convert.format",
            Self::Write(error) => error.code(),
            Self::Format(error) => error.code(),
        }
    }
}

fn and_others(others: usize) -> String {
    match others {
        0 => String::new(),
        1 => ", and one other".to_owned(),
        count => format!(", and {count} others"),
    }
}

/// The extents of a tensor as a checkpoint has them: the fastest varying is the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorShape(pub Vec<u64>);

impl fmt::Display for TensorShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extents: Vec<String> = self.0.iter().map(u64::to_string).collect();
        write!(f, "[{}]", extents.join(", "))
    }
}
