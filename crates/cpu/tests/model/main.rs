//! Whole models of the test data on this backend.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
mod goldens;
#[path = "../../../gemma/tests/media/mod.rs"]
mod media;
mod steps;
mod towers;
