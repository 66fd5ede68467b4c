//! Everything that can be wrong with a file or with the place it is read from.
//!
//! Variants carry facts; advice belongs to the program that shows them. `code()` gives a short
//! string that stays the same between versions, for callers that cannot match on a Rust enum.

mod header;
mod metadata;
mod model;
mod source;
mod write;

pub use header::HeaderError;
pub use metadata::MetadataError;
pub use model::ModelError;
pub use source::SourceError;
pub use write::WriteError;
