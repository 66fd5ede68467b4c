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
    #[error("not a GGUF file: it starts with {found:02x?}; `GGUF` was expected")]
    NotGguf {
        /// The first bytes, up to four.
        found: Vec<u8>,
    },

    /// The file was written for big-endian machines.
    #[error("big-endian GGUF files are not supported")]
    BigEndian,

    /// A version this reader does not know.
    #[error("GGUF version {found} is not supported; 2 and 3 are")]
    UnsupportedVersion {
        /// The version in the file.
        found: u32,
    },

    /// The file ends inside its header.
    #[error("the file ends inside its header: it has {len} bytes; at least {needed} are needed")]
    Truncated {
        /// Length of the file.
        len: u64,
        /// Length it must at least have.
        needed: u64,
    },

    /// The header is larger than any real one.
    #[error("the header is longer than {limit} bytes")]
    TooLong {
        /// The largest header that is read.
        limit: u64,
    },

    /// There is no memory for the header.
    #[error("no memory for a header of {bytes} bytes")]
    OutOfMemory {
        /// Bytes that were needed.
        bytes: u64,
    },

    /// The number of metadata entries is negative or more than the file could hold.
    #[error("the file announces {found} metadata entries; at most {limit} can fit")]
    EntryCount {
        /// The count in the file.
        found: i64,
        /// The most that fit in the rest of the file.
        limit: u64,
    },

    /// The number of tensors is negative or more than the file could hold.
    #[error("the file announces {found} tensors; at most {limit} can fit")]
    TensorCount {
        /// The count in the file.
        found: i64,
        /// The most that fit in the rest of the file.
        limit: u64,
    },

    /// A string runs past the end of the file.
    #[error("the string at byte {at} is {length} bytes long; {remaining} bytes remain")]
    StringTooLong {
        /// Where the string's length is written.
        at: u64,
        /// Its announced length.
        length: u64,
        /// Bytes left in the file.
        remaining: u64,
    },

    /// An array has more elements than the file could hold.
    #[error("array `{key}` announces {count} elements; at most {limit} can fit")]
    ArrayTooLong {
        /// The metadata key.
        key: String,
        /// Its announced number of elements.
        count: u64,
        /// The most that fit.
        limit: u64,
    },

    /// An array of arrays, which no reader accepts.
    #[error("`{key}` is an array of arrays; arrays hold scalars or strings")]
    NestedArray {
        /// The metadata key.
        key: String,
    },

    /// A value type with an unknown number.
    #[error("`{key}` has value type {found}; 0 to 12 are known")]
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
    #[error("`general.alignment` is {found}; a u32 power of two was expected")]
    Alignment {
        /// The value, or its type when that is wrong.
        found: String,
    },

    /// A tensor name that no reader has room for.
    #[error("the tensor name at byte {at} is {length} bytes long; at most 63 are allowed")]
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
    #[error("tensor `{name}` has {found} dimensions; at most 4 are allowed")]
    TooManyDimensions {
        /// The tensor.
        name: String,
        /// Its number of dimensions.
        found: u32,
    },

    /// A dimension below zero.
    #[error("tensor `{name}` has a dimension of {found}")]
    NegativeDimension {
        /// The tensor.
        name: String,
        /// The dimension, read as a signed number.
        found: i64,
    },

    /// A tensor with more values or bytes than can be counted.
    #[error("tensor `{name}` of shape {shape} is too large to count")]
    TensorTooLarge {
        /// The tensor.
        name: String,
        /// Its shape.
        shape: String,
    },

    /// A format number that stands for nothing.
    #[error("tensor `{name}` has format {id}, which is unknown")]
    UnknownFormat {
        /// The tensor.
        name: String,
        /// The format's number.
        id: u32,
    },

    /// A format that ggml once had and gave up.
    #[error("tensor `{name}` has format {id}, which was removed from ggml")]
    RemovedFormat {
        /// The tensor.
        name: String,
        /// The format's number.
        id: u32,
    },

    /// A row that does not consist of whole blocks.
    #[error("tensor `{name}` has rows of {row} values; {format} needs a multiple of {block}")]
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
    #[error("the data section begins at byte {start}; the file has {len}")]
    DataStart {
        /// Where the data section begins.
        start: u64,
        /// Length of the file.
        len: u64,
    },

    /// A tensor that runs past the end of the file: most often a download that was cut off.
    #[error("tensor `{name}` needs {bytes} bytes at offset {offset}; the data section has {available}")]
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

    /// Two tensors that claim the same bytes.
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
