//! What identifies an image or a sound: equal contents have equal digests, however they were encoded in a file.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// The SHA-256 of an image's pixels or a sound's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Computes a digest piece by piece.
pub(crate) struct Hasher(Sha256);

impl Hasher {
    /// `kind` keeps an image and a sound of the same bytes apart.
    pub(crate) fn new(kind: &str) -> Self {
        Self(Sha256::new().chain_update(kind).chain_update([0]))
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}
