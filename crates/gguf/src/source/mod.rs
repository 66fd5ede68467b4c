//! Where bytes come from.
//!
//! The reader above needs two things of a model's bytes: how many there are, and any range of
//! them. That is [`ByteSource`]; memory, files and servers implement it here, a browser's storage
//! elsewhere.

mod memory;
mod parts;

#[cfg(any(unix, windows))]
mod file;
#[cfg(all(feature = "http", not(target_family = "wasm")))]
mod http;

use std::{future::Future, ops::Range, pin::Pin};

#[cfg(any(unix, windows))]
pub use file::FileSource;
#[cfg(all(feature = "http", not(target_family = "wasm")))]
pub use http::{HttpLimits, HttpSource};
pub use memory::MemorySource;
pub use parts::PartsSource;

use crate::SourceError;

/// A read under way. Not `Send`: a browser's promises are not either.
pub type ReadFuture<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, SourceError>> + 'a>>;

/// A sequence of bytes of known length that can be read anywhere.
///
/// Reads are large (hundreds of kilobytes to megabytes), so a boxed future for each costs nothing
/// that could be measured and lets sources of different kinds stand behind one `dyn`.
pub trait ByteSource {
    /// What messages call this source: a path or an address.
    fn name(&self) -> &str;

    /// Number of bytes.
    fn len(&self) -> u64;

    /// Reads exactly the bytes of `range`, or fails. Dropping the future cancels the read.
    fn read(&self, range: Range<u64>) -> ReadFuture<'_>;

    /// Whether there are no bytes at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<S: ByteSource + ?Sized> ByteSource for Box<S> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn len(&self) -> u64 {
        (**self).len()
    }

    fn read(&self, range: Range<u64>) -> ReadFuture<'_> {
        (**self).read(range)
    }
}

/// Checks a range against a source's length and gives the number of bytes it spans.
fn span(name: &str, range: &Range<u64>, len: u64) -> Result<usize, SourceError> {
    if range.start > range.end || range.end > len {
        return Err(SourceError::OutOfRange { name: name.to_owned(), range: range.clone(), len });
    }
    let bytes = range.end - range.start;
    usize::try_from(bytes).map_err(|_| SourceError::TooLarge { bytes })
}

/// A buffer for `bytes` bytes, or an error where there is no room: a file decides this number, so
/// running out of memory must not end the program.
#[cfg(any(unix, windows))]
fn buffer(bytes: usize) -> Result<Vec<u8>, SourceError> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(bytes).map_err(|_| SourceError::TooLarge { bytes: bytes as u64 })?;
    Ok(buffer)
}
