//! Whole models on the CPU.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
mod goldens;
mod inputs;
#[path = "../../../gemma/tests/media/mod.rs"]
mod media;
mod steps;
mod together;
mod towers;
