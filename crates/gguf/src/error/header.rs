//! What can be wrong with the start of a file: every check has its own variant.

use crate::SourceError;

/// Why the start of a file is not a usable GGUF header.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The bytes could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),

    /// The first four bytes are not `GGUF`.
    #[error("this isn't a GGUF file (it starts with the bytes {found:02x?})")]
    NotGguf {
        /// The first bytes, up to four.
        found: Vec<u8>,
    },

    /// The file was written for big-endian machines.
    #[error("big-endian GGUF files are not supported")]
    BigEndian,

    /// A version this reader does not know.
    #[error("GGUF version {found} is not supported; versions 2 and 3 are")]
    UnsupportedVersion {
        /// The version in the file.
        found: u32,
    },

    /// The file ends inside its header.
    #[error("the file is cut off inside its header: it has {len} bytes and needs at least {needed}")]
    Truncated {
        /// Length of the file.
        len: u64,
        /// Length it must at least have.
        needed: u64,
    },

    /// The header is larger than any real one.
    #[error("the header is larger than {limit} bytes")]
    TooLong {
        /// The largest header that is read.
        limit: u64,
    },

    /// There is not enough memory for the header.
    #[error("not enough memory for a header of {bytes} bytes")]
    OutOfMemory {
        /// Bytes that were needed.
        bytes: u64,
    },

    /// The number of metadata entries is negative or more than the file could hold.
    #[error("the header claims {found} metadata entries, but at most {limit} fit in the file")]
    EntryCount {
        /// The count in the file.
        found: i64,
        /// The most that fit in the rest of the file.
        limit: u64,
    },

    /// The number of tensors is negative or more than the file could hold.
    #[error("the header claims {found} tensors, but at most {limit} fit in the file")]
    TensorCount {
        /// The count in the file.
        found: i64,
        /// The most that fit in the rest of the file.
        limit: u64,
    },

    /// A string runs past the end of the file.
    #[error("the string at byte {at} claims {length} bytes, but only {remaining} bytes are left")]
    StringTooLong {
        /// Where the string's length is written.
        at: u64,
        /// Its announced length.
        length: u64,
        /// Bytes left in the file.
        remaining: u64,
    },

    /// An array has more elements than the file could hold.
    #[error("array `{key}` claims {count} elements, but at most {limit} fit in the file")]
    ArrayTooLong {
        /// The metadata key.
        key: String,
        /// Its announced number of elements.
        count: u64,
        /// The most that fit.
        limit: u64,
    },

    /// An array of arrays, which GGUF does not allow.
    #[error("`{key}` is an array of arrays, which GGUF does not allow")]
    NestedArray {
        /// The metadata key.
        key: String,
    },

    /// A value type with an unknown number.
    #[error("`{key}` has the unknown value type {found} (expected 0 to 12)")]
    UnknownValueType {
        /// The metadata key.
        key: String,
        /// The type number in the file.
        found: u32,
    },

    /// A metadata entry without a name.
    #[error("the metadata entry at byte {at} has an empty key")]
    EmptyKey {
        /// Where the entry begins.
        at: u64,
    },

    /// A metadata key that is not text.
    #[error("the metadata key at byte {at} is not UTF-8")]
    KeyNotUtf8 {
        /// Where the entry begins.
        at: u64,
    },

    /// Two metadata entries with one name.
    #[error("metadata key `{key}` occurs twice")]
    DuplicateKey {
        /// The key.
        key: String,
    },

    /// `general.alignment` is not a usable alignment.
    #[error("`general.alignment` is {found} (expected a power of two as u32)")]
    Alignment {
        /// The value, or its type when that is wrong.
        found: String,
    },

    /// A tensor name that is longer than ggml allows.
    #[error("the tensor name at byte {at} has {length} bytes (expected at most 63)")]
    TensorNameTooLong {
        /// Where the tensor's entry begins.
        at: u64,
        /// Length of its name.
        length: u64,
    },

    /// A tensor name that is not text.
    #[error("the tensor name at byte {at} is not UTF-8")]
    TensorNameNotUtf8 {
        /// Where the tensor's entry begins.
        at: u64,
    },

    /// Two tensors with one name.
    #[error("tensor `{name}` occurs twice")]
    DuplicateTensor {
        /// The name.
        name: String,
    },

    /// More dimensions than a tensor has.
    #[error("tensor `{name}` has {found} dimensions (expected at most 4)")]
    TooManyDimensions {
        /// The tensor.
        name: String,
        /// Its number of dimensions.
        found: u32,
    },

    /// A dimension below zero.
    #[error("tensor `{name}` has a negative dimension: {found}")]
    NegativeDimension {
        /// The tensor.
        name: String,
        /// The dimension, read as a signed number.
        found: i64,
    },

    /// A tensor whose number of values or bytes does not fit in 64 bits.
    #[error("tensor `{name}` with shape {shape} is too large")]
    TensorTooLarge {
        /// The tensor.
        name: String,
        /// Its shape.
        shape: String,
    },

    /// An unknown format number.
    #[error("tensor `{name}` has the unknown format {id}")]
    UnknownFormat {
        /// The tensor.
        name: String,
        /// The format's number.
        id: u32,
    },

    /// A format that was removed from ggml.
    #[error("tensor `{name}` has format {id}, which was removed from ggml")]
    RemovedFormat {
        /// The tensor.
        name: String,
        /// The format's number.
        id: u32,
    },

    /// A row that does not consist of whole blocks.
    #[error("tensor `{name}` has rows of {row} values, but {format} needs a multiple of {block}")]
    PartialBlock {
        /// The tensor.
        name: String,
        /// Values in a row.
        row: u64,
        /// The tensor's format.
        format: crate::Format,
        /// Values in a block of that format.
        block: u64,
    },

    /// A tensor that does not begin at a multiple of the alignment.
    #[error("tensor `{name}` is at offset {offset}, which is not a multiple of {alignment}")]
    Misaligned {
        /// The tensor.
        name: String,
        /// Its offset in the data section.
        offset: u64,
        /// The file's alignment.
        alignment: u64,
    },

    /// The data section would begin after the end of the file.
    #[error("the file is cut off: its data begins at byte {start}, but it has only {len} bytes")]
    DataStart {
        /// Where the data section begins.
        start: u64,
        /// Length of the file.
        len: u64,
    },

    /// A tensor that runs past the end of the file: most often a download that was cut off.
    #[error(
        "the file is cut off: tensor `{name}` needs {bytes} bytes at offset {offset}, but there are only {available} bytes of data"
    )]
    TensorPastEnd {
        /// The tensor.
        name: String,
        /// Its offset in the data section.
        offset: u64,
        /// Its size.
        bytes: u64,
        /// Size of the data section.
        available: u64,
    },

    /// Two tensors that share bytes.
    #[error("tensors `{first}` and `{second}` overlap")]
    Overlap {
        /// The tensor that begins first.
        first: String,
        /// The tensor that begins before the first one ends.
        second: String,
    },
}

impl HeaderError {
    /// A short string for this kind of failure that stays the same between versions.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Source(error) => error.code(),
            Self::NotGguf { .. } => "gguf.not_gguf",
            Self::BigEndian => "gguf.big_endian",
            Self::UnsupportedVersion { .. } => "gguf.version",
            Self::Truncated { .. } | Self::DataStart { .. } | Self::TensorPastEnd { .. } => "gguf.truncated",
            Self::TooLong { .. } | Self::OutOfMemory { .. } => "gguf.too_long",
            Self::UnknownFormat { .. } | Self::RemovedFormat { .. } => "gguf.format",
            _ => "gguf.malformed",
        }
    }
}
