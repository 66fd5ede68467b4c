//! Everything that can be wrong with a file or with the place it is read from.
//!
//! Variants carry facts; advice belongs to the program that shows them. `code()` gives a short
//! string that stays the same between versions, for callers that cannot match on a Rust enum.

use std::ops::Range;

use crate::value::ValueType;

/// Why bytes could not be read from a [`ByteSource`](crate::ByteSource).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The caller asked for bytes that the source does not have.
    #[error("bytes {}..{} were asked for; `{name}` has {len}", range.start, range.end)]
    OutOfRange {
        /// Where the bytes were to come from.
        name: String,
        /// The bytes asked for.
        range: Range<u64>,
        /// How many bytes there are.
        len: u64,
    },

    /// One read is larger than this machine can address or has room for.
    #[error("{bytes} bytes were asked for in one read; this machine cannot hold them")]
    TooLarge {
        /// Size of the read.
        bytes: u64,
    },

    /// The operating system could not open or read a file.
    #[error("`{name}` cannot be read")]
    Io {
        /// The file.
        name: String,
        /// What the operating system said.
        source: std::io::Error,
    },

    /// The source ended before its announced length: it was truncated while open.
    #[error("`{name}` ended at byte {found}; {expected} were expected")]
    Truncated {
        /// Where the bytes came from.
        name: String,
        /// Where it ended.
        found: u64,
        /// Where it should have ended.
        expected: u64,
    },

    /// A server answered with a status other than 206 Partial Content.
    #[error("`{name}` answered with HTTP status {status}")]
    Status {
        /// The address.
        name: String,
        /// The HTTP status code.
        status: u16,
    },

    /// A server sent the whole file although a part was asked for.
    #[error("`{name}` ignores Range requests: it answered 200 instead of 206")]
    RangeIgnored {
        /// The address.
        name: String,
    },

    /// A server's `Content-Range` is missing, unreadable, or not the range asked for.
    #[error("`{name}` sent Content-Range `{found}`; `{expected}` was expected")]
    ContentRange {
        /// The address.
        name: String,
        /// The header as sent, empty when there was none.
        found: String,
        /// What it should have been.
        expected: String,
    },

    /// The file behind an address changed its length between two reads.
    #[error("`{name}` changed while it was read: it had {expected} bytes and now has {found}")]
    Changed {
        /// The address.
        name: String,
        /// Its length now.
        found: u64,
        /// Its length when it was opened.
        expected: u64,
    },

    /// A connection failed, and so did every retry.
    #[error("`{name}` could not be read in {attempts} attempts: {reason}")]
    Connection {
        /// The address.
        name: String,
        /// How often it was tried.
        attempts: u32,
        /// What went wrong the last time.
        reason: String,
    },

    /// A source of another crate failed in its own way.
    #[error("`{name}` cannot be read: {reason}")]
    Other {
        /// Where the bytes were to come from.
        name: String,
        /// What went wrong.
        reason: String,
    },
}

impl SourceError {
    /// A short string for this kind of failure that stays the same between versions.
    pub fn code(&self) -> &'static str {
        match self {
            Self::OutOfRange { .. } => "source.out_of_range",
            Self::TooLarge { .. } => "source.too_large",
            Self::Io { .. } => "source.io",
            Self::Truncated { .. } => "source.truncated",
            Self::Status { .. } => "source.status",
            Self::RangeIgnored { .. } => "source.range_ignored",
            Self::ContentRange { .. } => "source.content_range",
            Self::Changed { .. } => "source.changed",
            Self::Connection { .. } => "source.connection",
            Self::Other { .. } => "source.other",
        }
    }
}

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

/// Why a metadata value could not be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// A required key is not in the file.
    #[error("metadata key `{key}` is missing; {expected} was expected")]
    Missing {
        /// The key.
        key: String,
        /// What should be there.
        expected: &'static str,
    },

    /// A key has a value of another type.
    #[error("metadata key `{key}` is {found}; {expected} was expected")]
    WrongType {
        /// The key.
        key: String,
        /// The type in the file.
        found: ValueType,
        /// What should be there.
        expected: &'static str,
    },

    /// A number does not fit.
    #[error("metadata key `{key}` is {found}; {expected} was expected")]
    OutOfRange {
        /// The key.
        key: String,
        /// The number in the file.
        found: String,
        /// What should be there.
        expected: &'static str,
    },

    /// A string is not text.
    #[error("metadata key `{key}` is not UTF-8")]
    NotUtf8 {
        /// The key.
        key: String,
    },

    /// An array has the wrong number of elements.
    #[error("metadata key `{key}` has {found} elements; {expected} were expected")]
    WrongLength {
        /// The key.
        key: String,
        /// Elements in the file.
        found: u64,
        /// Elements needed.
        expected: u64,
    },
}

impl MetadataError {
    /// A short string for this kind of failure that stays the same between versions.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "metadata.missing",
            Self::WrongType { .. } => "metadata.type",
            Self::OutOfRange { .. } => "metadata.range",
            Self::NotUtf8 { .. } => "metadata.utf8",
            Self::WrongLength { .. } => "metadata.length",
        }
    }
}

/// Why a model, made of one file or several, could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A file's header is unusable.
    #[error("`{name}` is not a usable GGUF file")]
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
    #[error("the model is split into {expected} files; {found} were opened")]
    PartCount {
        /// Files given.
        found: u64,
        /// Files the model is made of.
        expected: u64,
    },

    /// The files of a split model are out of order, or belong to different models.
    #[error("`{name}` is part {found} of its model; part {expected} was expected")]
    PartNumber {
        /// The file.
        name: String,
        /// Its own number, counted from 1.
        found: u64,
        /// The place it was given at, counted from 1.
        expected: u64,
    },

    /// The files of a split model hold more or fewer tensors than the first announces.
    #[error("the model's files hold {found} tensors; {expected} were expected")]
    PartTensors {
        /// Tensors found in all files.
        found: u64,
        /// Tensors announced.
        expected: u64,
    },

    /// Two files of a split model hold a tensor of one name.
    #[error("tensor `{name}` occurs in two files of the model")]
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

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The output refused the bytes.
    #[error("the output cannot be written")]
    Io(#[from] std::io::Error),

    /// An empty key, or one that was set before.
    #[error("metadata key `{key}` is empty or was set before")]
    Key {
        /// The key.
        key: String,
    },

    /// An alignment that is not a power of two.
    #[error("the alignment is {found}; a power of two was expected")]
    Alignment {
        /// The alignment asked for.
        found: u32,
    },

    /// A tensor that no reader would accept.
    #[error("tensor `{name}` cannot be written: {reason}")]
    Tensor {
        /// The tensor.
        name: String,
        /// Why not.
        reason: String,
    },

    /// The data given for a tensor has another length than its shape and format need.
    #[error("tensor `{name}` was given {found} bytes; it has {expected}")]
    WrongLength {
        /// The tensor.
        name: String,
        /// Bytes given.
        found: u64,
        /// Bytes needed.
        expected: u64,
    },

    /// More data than there are tensors.
    #[error("data was given for {found} tensors; the header lists {expected}")]
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
