//! The digest of a small file, computed again if the file is replaced while the server runs.

use std::{
    io::Seek as _,
    sync::{Mutex, PoisonError},
};

use rullama_gguf::ollama::Digest;

use super::file::{Content, OpenFile};

/// The weak tag of the file when it was last read, and its digest.
#[derive(Default)]
pub(super) struct KnownDigest(Mutex<Option<(String, Digest)>>);

impl KnownDigest {
    /// The digest of an opened file. The file is read only if its weak tag has changed.
    pub(super) fn of(&self, opened: &mut OpenFile) -> Option<Digest> {
        // The lock is held while the file is read, so that only one request reads it.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((tag, digest)) = &*known
            && *tag == opened.tag
        {
            return Some(*digest);
        }
        let digest = match &mut opened.content {
            Content::Memory(bytes) => Digest::of(bytes),
            Content::File(file) => {
                file.rewind().ok()?;
                Digest::of_reader(file, |_| ()).ok()?
            }
        };
        *known = Some((opened.tag.clone(), digest));
        Some(digest)
    }
}
