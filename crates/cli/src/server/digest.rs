//! The digest of a file that is small enough to be read for it, and may be replaced while it is served.

use std::{
    io::Seek as _,
    sync::{Mutex, PoisonError},
};

use rullama_gguf::ollama::Digest;

use super::file::{Content, OpenFile};

/// What was found when the file was last read: its weak tag then, and its digest.
#[derive(Default)]
pub(super) struct KnownDigest(Mutex<Option<(String, Digest)>>);

impl KnownDigest {
    /// The digest of an opened file with a weak tag; read again only where that tag is another than before.
    pub(super) fn of(&self, opened: &mut OpenFile) -> Option<Digest> {
        // Others wait meanwhile, rather than reading the same.
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
