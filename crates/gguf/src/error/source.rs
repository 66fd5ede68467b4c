//! What can be wrong with the place that bytes come from.

use std::ops::Range;

/// Why bytes could not be read from a [`ByteSource`](crate::ByteSource).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The caller asked for bytes that the source does not have.
    #[error("bytes {}..{} were requested, but `{name}` has {len} bytes", range.start, range.end)]
    OutOfRange {
        /// Where the bytes were to come from.
        name: String,
        /// The bytes asked for.
        range: Range<u64>,
        /// How many bytes there are.
        len: u64,
    },

    /// One read is larger than this machine can address or has room for.
    #[error("a read of {bytes} bytes is too large for this machine")]
    TooLarge {
        /// Size of the read.
        bytes: u64,
    },

    /// The operating system could not open or read a file.
    #[error("`{name}` can't be read")]
    Io {
        /// The file.
        name: String,
        /// What the operating system said.
        source: std::io::Error,
    },

    /// The source ended before its announced length: it was truncated while open.
    #[error("`{name}` ends at byte {found} (expected {expected}): it was cut off while it was open")]
    Truncated {
        /// Where the bytes came from.
        name: String,
        /// Where it ended.
        found: u64,
        /// Where it should have ended.
        expected: u64,
    },

    /// A server answered with a status other than 206 Partial Content.
    #[error("`{name}` returned HTTP status {status}")]
    Status {
        /// The address.
        name: String,
        /// The HTTP status code.
        status: u16,
    },

    /// A server sent the whole file although a part was asked for.
    #[error("the server of `{name}` does not support Range requests: it returned status 200 instead of 206")]
    RangeIgnored {
        /// The address.
        name: String,
    },

    /// A server's `Content-Range` is missing, unreadable, or not the range asked for.
    #[error("`{name}` returned Content-Range `{found}` (expected `{expected}`)")]
    ContentRange {
        /// The address.
        name: String,
        /// The header as sent, empty when there was none.
        found: String,
        /// What it should have been.
        expected: String,
    },

    /// The file behind an address changed its length between two reads.
    #[error("`{name}` changed while rullama was reading it: it had {expected} bytes and now has {found}")]
    Changed {
        /// The address.
        name: String,
        /// Its length now.
        found: u64,
        /// Its length when it was opened.
        expected: u64,
    },

    /// The file behind an address became another one between two reads, though of the same length.
    #[error("`{name}` changed while rullama was reading it: its {what} was {expected} and is now {found}")]
    Replaced {
        /// The address.
        name: String,
        /// What tells versions of a file apart: `ETag`, or `date` on servers without tags.
        what: &'static str,
        /// What it is now.
        found: String,
        /// What it was when the file was opened.
        expected: String,
    },

    /// A server sends so little that a read would never end.
    #[error("`{name}` is too slow: it sent {bytes} bytes in {seconds} seconds (expected at least {least})")]
    TooSlow {
        /// The address.
        name: String,
        /// Bytes that arrived.
        bytes: u64,
        /// The time they took.
        seconds: u64,
        /// The fewest bytes in such a time.
        least: u64,
    },

    /// A connection failed, and so did every retry.
    #[error("`{name}` can't be reached after {attempts} attempts: {reason}")]
    Connection {
        /// The address.
        name: String,
        /// How often it was tried.
        attempts: u32,
        /// What went wrong the last time.
        reason: String,
    },

    /// A source of another crate failed in its own way.
    #[error("`{name}` can't be read: {reason}")]
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
            Self::Changed { .. } | Self::Replaced { .. } => "source.changed",
            Self::TooSlow { .. } => "source.too_slow",
            Self::Connection { .. } => "source.connection",
            Self::Other { .. } => "source.other",
        }
    }
}
