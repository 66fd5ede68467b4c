//! Bytes that are already in memory.

use std::ops::Range;

use super::{ByteSource, ReadFuture, span};

/// A source over bytes in memory, for tests and for small files.
#[derive(Debug, Clone)]
pub struct MemorySource {
    name: String,
    bytes: Vec<u8>,
}

impl MemorySource {
    /// Takes the bytes as a source.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self { name: "memory".to_owned(), bytes: bytes.into() }
    }

    /// The same with a name for messages, where the bytes came from a file of that name.
    pub fn named(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), bytes: bytes.into() }
    }
}

impl ByteSource for MemorySource {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, range: Range<u64>) -> ReadFuture<'_> {
        Box::pin(async move {
            let count = span(&self.name, &range, self.len())?;
            // `span` has placed the range inside `bytes`, so its start is a valid index.
            let start = range.start as usize;
            Ok(self.bytes[start..start + count].to_vec())
        })
    }
}
