//! Reading and writing whole files: right ones, wrong ones, split ones, far ones.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
#[cfg(not(target_family = "wasm"))]
mod disk;
mod hostile;
#[cfg(all(feature = "http", not(target_family = "wasm")))]
mod http;
mod model;
