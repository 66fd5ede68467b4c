//! A file whose weights are zero and take no room.

use std::ops::Range;

use rullama_gguf::{ByteSource, ReadFuture, SourceError, WriteError, Writer};

/// The bytes of a file of which only the header is kept; zeros follow it. What a model of real size needs, and how it would be
/// computed, can be told from it.
#[derive(Debug, Clone)]
pub struct Blank {
    header: Vec<u8>,
    len: u64,
}

impl Blank {
    /// The file of this header, with as many bytes of weights as it lists.
    ///
    /// # Errors
    ///
    /// If no file can have this header.
    pub fn new(header: Writer) -> Result<Self, WriteError> {
        let data = header.data_bytes();
        let mut bytes = Vec::new();
        drop(header.begin(&mut bytes)?);
        Ok(Self { len: bytes.len() as u64 + data, header: bytes })
    }
}

impl ByteSource for Blank {
    fn name(&self) -> &str {
        "blank"
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, range: Range<u64>) -> ReadFuture<'_> {
        Box::pin(async move {
            if range.start > range.end || range.end > self.len {
                return Err(SourceError::OutOfRange { name: self.name().to_owned(), range, len: self.len });
            }
            let mut bytes = vec![0; (range.end - range.start) as usize];
            let known = usize::try_from(range.start)
                .ok()
                .and_then(|start| self.header.get(start..))
                .unwrap_or_default();
            let known = &known[..known.len().min(bytes.len())];
            bytes[..known.len()].copy_from_slice(known);
            Ok(bytes)
        })
    }
}
