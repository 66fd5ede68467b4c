//! What can be wrong with a file that is to be written.

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The output refused the bytes.
    #[error("the file can't be written")]
    Io(#[from] std::io::Error),

    /// An empty key, or one that was set before.
    #[error("metadata key `{key}` is empty or already set")]
    Key {
        /// The key.
        key: String,
    },

    /// An alignment that is not a power of two.
    #[error("the alignment is {found} (expected a power of two)")]
    Alignment {
        /// The alignment asked for.
        found: u32,
    },

    /// A tensor that no reader would accept.
    #[error("tensor `{name}` can't be written: {reason}")]
    Tensor {
        /// The tensor.
        name: String,
        /// Why not.
        reason: String,
    },

    /// The data given for a tensor has another length than its shape and format need.
    #[error("tensor `{name}` was given {found} bytes (expected {expected})")]
    WrongLength {
        /// The tensor.
        name: String,
        /// Bytes given.
        found: u64,
        /// Bytes needed.
        expected: u64,
    },

    /// More data than there are tensors.
    #[error("data was given for {found} tensors, but the header lists {expected}")]
    TensorCount {
        /// Tensors written.
        found: usize,
        /// Tensors listed.
        expected: usize,
    },
}

impl WriteError {
    /// A short string for this kind of failure that stays the same between versions.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io(_) => "write.io",
            _ => "write.invalid",
        }
    }
}
