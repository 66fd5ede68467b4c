//! What can be wrong with a model of one file or several.

use crate::{HeaderError, MetadataError, SourceError};

/// Why a model, made of one file or several, could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A file's header is unusable.
    #[error("`{name}` can't be opened")]
    Header {
        /// The file.
        name: String,
        /// What is wrong with it.
        source: HeaderError,
    },

    /// A file could not be opened.
    #[error(transparent)]
    Source(#[from] SourceError),

    /// A key that describes the split has an unusable value.
    #[error(transparent)]
    Metadata(#[from] MetadataError),

    /// A model in several files was opened with too few or too many of them.
    #[error("the model has {expected} files, but {found} were given")]
    PartCount {
        /// Files given.
        found: u64,
        /// Files the model is made of.
        expected: u64,
    },

    /// The files of a split model are out of order, or belong to different models.
    #[error("`{name}` is part {found} of its model (expected part {expected})")]
    PartNumber {
        /// The file.
        name: String,
        /// Its own number, counted from 1.
        found: u64,
        /// The place it was given at, counted from 1.
        expected: u64,
    },

    /// The files of a split model hold more or fewer tensors than the first announces.
    #[error("the model's files contain {found} tensors (expected {expected})")]
    PartTensors {
        /// Tensors found in all files.
        found: u64,
        /// Tensors announced.
        expected: u64,
    },

    /// Two files of a model hold a tensor of one name.
    #[error("two files of the model contain tensor `{name}`")]
    DuplicateTensor {
        /// The tensor.
        name: String,
    },
}

impl ModelError {
    /// A short string for this kind of failure that stays the same between versions.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Header { source, .. } => source.code(),
            Self::Source(error) => error.code(),
            Self::Metadata(error) => error.code(),
            _ => "gguf.split",
        }
    }
}
