//! Reading and writing whole files: right ones, wrong ones, split ones, far ones.

mod common;
#[cfg(not(target_family = "wasm"))]
mod disk;
mod hostile;
#[cfg(all(feature = "http", not(target_family = "wasm")))]
mod http;
mod model;
