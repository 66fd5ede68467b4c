//! A file on disk, read at positions, so that one open file serves any number of readers.

use std::{fs::File, io, ops::Range, path::Path};

use super::{ByteSource, ReadFuture, buffer, span};
use crate::SourceError;

/// A source over a file.
///
/// Its reads complete before their future is first polled to the end: a local disk answers faster
/// than a thread could be woken, and the engine above reads in large pieces.
#[derive(Debug)]
pub struct FileSource {
    name: String,
    file: File,
    len: u64,
}

impl FileSource {
    /// Opens the file at `path`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SourceError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let io = |source| SourceError::Io { name: name.clone(), source };
        let file = File::open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        if metadata.is_dir() {
            return Err(io(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        Ok(Self { name, file, len: metadata.len() })
    }

    fn read_now(&self, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        let count = span(&self.name, &range, self.len)?;
        let mut bytes = buffer(count)?;
        bytes.resize(count, 0);
        let mut done = 0;
        while done < count {
            let at = range.start + done as u64;
            match read_at(&self.file, &mut bytes[done..], at) {
                Ok(0) => {
                    let name = self.name.clone();
                    return Err(SourceError::Truncated { name, found: at, expected: self.len });
                }
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(SourceError::Io { name: self.name.clone(), source }),
            }
        }
        Ok(bytes)
    }
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, bytes, at)
}

#[cfg(windows)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    // Moves the file's cursor as a side effect, which nothing here relies on.
    std::os::windows::fs::FileExt::seek_read(file, bytes, at)
}

impl ByteSource for FileSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, range: Range<u64>) -> ReadFuture<'_> {
        Box::pin(async move { self.read_now(range) })
    }
}
