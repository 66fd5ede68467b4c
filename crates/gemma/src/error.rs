//! What can be wrong with a model.

use rullama_gguf::{MetadataError, Shape};

/// Why a file is not a Gemma 4 model that can run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GemmaError {
    /// Another architecture.
    #[error("{}, and rullama runs `gemma4` models only", architecture(found))]
    Architecture {
        /// The architecture in the file.
        found: String,
    },

    /// A file without weights, such as a vocabulary.
    #[error("this file has no weights")]
    NoWeights,

    /// Metadata is missing or of the wrong type.
    #[error(transparent)]
    Metadata(#[from] MetadataError),

    /// A number outside of what a model can have.
    #[error("`{key}` is {found} (expected {expected})")]
    OutOfRange {
        /// What it is called in the metadata.
        key: &'static str,
        /// Its value.
        found: String,
        /// What it should be.
        expected: &'static str,
    },

    /// Keys and values of different widths.
    #[error(
        "in layer {layer}, keys have {keys} columns and values have {values}, but they must have the same number"
    )]
    HeadWidths {
        /// The layer.
        layer: u32,
        /// Width of its keys.
        keys: u32,
        /// Width of its values.
        values: u32,
    },

    /// Query heads that cannot be shared out evenly.
    #[error("layer {layer} has {heads} query heads, which is not a multiple of its {kv_heads} key heads")]
    HeadCounts {
        /// The layer.
        layer: u32,
        /// Query heads.
        heads: u32,
        /// Key heads.
        kv_heads: u32,
    },

    /// Heads that are too many and too wide together.
    #[error("layer {layer} has {heads} heads of {head_width} columns (expected at most 2^24 columns in all)")]
    TooWide {
        /// The layer.
        layer: u32,
        /// Its query heads.
        heads: u32,
        /// Columns of each.
        head_width: u32,
    },

    /// A layer that borrows keys and values of which no earlier layer has any.
    #[error("layer {layer} shares the keys and values of an earlier {kind} layer, but there is none")]
    NoDonor {
        /// The layer.
        layer: u32,
        /// `sliding` or `global`.
        kind: &'static str,
    },

    /// A tensor that the model cannot run without.
    #[error("tensor `{name}` is missing")]
    MissingTensor {
        /// The tensor.
        name: String,
    },

    /// A tensor of the decoder that the model, as its metadata describes it, does not have: it would run without a part.
    #[error("tensor `{name}` does not belong to the model that the metadata describes")]
    UnexpectedTensor {
        /// The tensor.
        name: String,
    },

    /// A tensor of another shape than the metadata asks for.
    #[error("tensor `{name}` has shape {found} (expected {expected})")]
    WrongShape {
        /// The tensor.
        name: String,
        /// Its shape in the file.
        found: Shape,
        /// The shape the metadata asks for.
        expected: Shape,
    },
}

impl GemmaError {
    /// A short string for this kind of failure that stays the same between versions.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Architecture { .. } | Self::NoWeights => "model.unsupported",
            Self::Metadata(error) => error.code(),
            Self::MissingTensor { .. } => "model.missing_tensor",
            Self::UnexpectedTensor { .. } => "model.unexpected_tensor",
            Self::WrongShape { .. } => "model.wrong_shape",
            _ => "model.invalid",
        }
    }
}

fn architecture(found: &str) -> String {
    if found.is_empty() {
        "the file states no architecture".to_owned()
    } else {
        format!("this is a model of architecture `{found}`")
    }
}
