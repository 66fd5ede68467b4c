//! The source of the seeds that options leave open.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// A source of unpredictable 64-bit numbers. The engine takes one for each reply whose options name no seed.
///
/// The default asks the operating system. `wasm32-unknown-unknown` has none: there the default gives the same numbers
/// in every run, and code that loads a model in a browser sets a source that asks `crypto.getRandomValues`.
#[derive(Clone, Copy)]
pub struct Entropy(fn() -> u64);

impl Entropy {
    /// A source that calls `next`.
    #[must_use]
    pub const fn new(next: fn() -> u64) -> Self {
        Self(next)
    }

    /// A new seed. It has 53 bits, so that JSON and JavaScript can carry it and the reply can be repeated with it.
    pub(crate) fn seed(self) -> u64 {
        (self.0)() & ((1 << 53) - 1)
    }
}

impl Default for Entropy {
    fn default() -> Self {
        // The standard library keys its hash maps from the operating system's entropy.
        Self::new(|| RandomState::new().build_hasher().finish())
    }
}

impl std::fmt::Debug for Entropy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Entropy")
    }
}
