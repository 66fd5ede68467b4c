//! Models that Ollama has downloaded.
//!
//! Ollama keeps a folder of content-addressed blobs and, for each model, a small manifest that
//! says which blobs it is made of. [`Store`] finds the manifest of a [`Name`], checks that its
//! blobs are there and whole, and gives their paths:
//!
//! ```no_run
//! use rullama_gguf::ollama::{Name, Store};
//!
//! let store = Store::new("/home/me/.ollama/models");
//! let model = store.model(&"gemma4:e2b".parse::<Name>()?)?;
//! println!("weights are in {}", model.weights.path.display());
//! # Ok::<(), rullama_gguf::ollama::StoreError>(())
//! ```
//!
//! The store belongs to Ollama. Nothing in it is changed but by [`Store::remove`].

mod digest;
mod error;
mod manifest;
mod name;
mod remove;
mod store;

pub use digest::Digest;
pub use error::StoreError;
pub use manifest::{Config, Layer, LayerKind, Manifest};
pub use name::Name;
pub use remove::Removal;
pub use store::{Blob, BrokenModel, Listing, Store, StoredModel, Summary};
