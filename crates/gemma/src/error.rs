//! What can be wrong with a model.

use rullama_gguf::{FormatError, MetadataError, Shape, SourceError};

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

    /// A projector of another family of models.
    #[error("the projector is of type `{found}`, and rullama runs those of Gemma 4 only")]
    Projector {
        /// The type in the file.
        found: String,
    },

    /// Bounds of a linear layer that no number lies between.
    #[error("the bounds of `{linear}` are {low} and {high}, but a lower and an upper bound are needed")]
    Bounds {
        /// The layer.
        linear: String,
        /// The lower bound.
        low: f32,
        /// The upper bound.
        high: f32,
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
            Self::Architecture { .. } | Self::NoWeights | Self::Projector { .. } => "model.unsupported",
            Self::Metadata(error) => error.code(),
            Self::MissingTensor { .. } => "model.missing_tensor",
            Self::UnexpectedTensor { .. } => "model.unexpected_tensor",
            Self::WrongShape { .. } => "model.wrong_shape",
            _ => "model.invalid",
        }
    }
}

/// Why a tower could not be described, or given its inputs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TowerError {
    /// What the file says is wrong.
    #[error(transparent)]
    Model(#[from] GemmaError),

    /// Values that the host computes with could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),

    /// These values could not be decoded.
    #[error("tensor `{tensor}` can't be decoded")]
    Format {
        /// The tensor.
        tensor: String,
        /// What is wrong.
        source: FormatError,
    },

    /// A picture that does not consist of whole soft rows, or with a longer side than the model knows places for.
    #[error(
        "a picture of {columns} × {rows} patches can't be encoded (both must be multiples of {multiple}, up to {most})"
    )]
    Patches {
        /// Its patches along a row.
        columns: u32,
        /// Its rows of patches.
        rows: u32,
        /// What both must be a multiple of.
        multiple: u32,
        /// The most that a side may have.
        most: u32,
    },

    /// A picture with more or fewer values than its patches have.
    #[error("a picture has {found} values (expected {width} for each of {patches} patches)")]
    PatchValues {
        /// Its values.
        found: usize,
        /// Its patches.
        patches: usize,
        /// Values of each.
        width: usize,
    },
}

impl TowerError {
    /// A short string for this kind of failure that stays the same between versions.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Model(error) => error.code(),
            Self::Source(error) => error.code(),
            Self::Format { source, .. } => source.code(),
            Self::Patches { .. } | Self::PatchValues { .. } => "input.picture",
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
