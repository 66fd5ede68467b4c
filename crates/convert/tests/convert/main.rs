//! A checkpoint of Hugging Face's, converted, against what llama.cpp and Hugging Face make of it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod checkpoint;
mod formats;
mod golden;
mod hostile;
mod refused;
