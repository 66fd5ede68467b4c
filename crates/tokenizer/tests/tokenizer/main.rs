//! Tests of the whole tokenizer, in one program so that the vocabulary is read once.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod decode;
mod dialects;
mod encode;
mod hostile;
mod properties;
mod vectors;
