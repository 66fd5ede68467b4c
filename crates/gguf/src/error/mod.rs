//! Errors of reading and writing GGUF files.
//!
//! Variants carry facts; advice belongs to the program that shows them. `code()` gives a short
//! string that stays the same between versions, for callers that cannot match on a Rust enum.

mod header;
mod metadata;
mod model;
mod source;
mod write;

use std::error::Error;

pub use header::HeaderError;
pub use metadata::MetadataError;
pub use model::ModelError;
pub use source::SourceError;
pub use write::WriteError;

/// An error and its causes in one line, because the outer message rarely says what went wrong.
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
