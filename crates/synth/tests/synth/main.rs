//! Plans have the structure of the released models; files can be read, and hold what was promised.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod files;
mod plans;
mod tokenizer;
