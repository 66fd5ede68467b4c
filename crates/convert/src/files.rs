//! The small files of a checkpoint's folder.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;

use crate::ConvertError;

/// The largest file that is read whole. The real tokenizer takes 32 MB.
const LIMIT: u64 = 512 << 20;

/// A checkpoint's folder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Folder<'p>(pub(crate) &'p Path);

impl Folder<'_> {
    pub(crate) fn path(self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A file that must be there.
    pub(crate) fn json<T: DeserializeOwned>(self, name: &str) -> Result<T, ConvertError> {
        self.optional_json(name)?.ok_or_else(|| ConvertError::MissingFile { path: self.path(name) })
    }

    /// A file that may be there.
    pub(crate) fn optional_json<T: DeserializeOwned>(self, name: &str) -> Result<Option<T>, ConvertError> {
        let Some(text) = self.optional_bytes(name)? else { return Ok(None) };
        let json = |source| ConvertError::Json { path: self.path(name), source };
        serde_json::from_slice(&text).map(Some).map_err(json)
    }

    /// A text that may be there.
    pub(crate) fn optional_text(self, name: &str) -> Result<Option<String>, ConvertError> {
        let Some(bytes) = self.optional_bytes(name)? else { return Ok(None) };
        let read = |_| ConvertError::Read {
            path: self.path(name),
            source: io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"),
        };
        String::from_utf8(bytes).map(Some).map_err(read)
    }

    fn optional_bytes(self, name: &str) -> Result<Option<Vec<u8>>, ConvertError> {
        let path = self.path(name);
        let file = match fs::File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(ConvertError::Read { path, source }),
        };
        let mut bytes = Vec::new();
        // One byte more than is allowed tells a file that is too long, whatever the system says of its length.
        match file.take(LIMIT + 1).read_to_end(&mut bytes) {
            Ok(read) if read as u64 > LIMIT => {
                Err(ConvertError::TooLarge { path, found: read as u64, limit: LIMIT })
            }
            Ok(_) => Ok(Some(bytes)),
            Err(source) => Err(ConvertError::Read { path, source }),
        }
    }
}
