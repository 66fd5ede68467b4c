//! GGUF files, read through any source of bytes and without ever holding the whole file.
//!
//! A model of several gigabytes is opened by reading a few megabytes: the [`Header`] with its
//! [`Metadata`] and its directory of tensors. Tensor data is then read where it is needed, from
//! memory, from a file, from several files that make up one model, or over HTTP Range requests;
//! all of these are a [`ByteSource`].
//!
//! | to | use |
//! |---|---|
//! | open a model | [`Model::open`], [`Model::open_parts`], [`open_path`] |
//! | look a value up | [`Header::metadata`], [`Metadata::section`] |
//! | read and decode weights | [`Model::read`], [`Format::decode`] |
//! | quantise weights | [`Format::encode`], and [`Mix`] for which format each gets |
//! | write a file | [`Writer`] |
//! | find a model that Ollama downloaded | [`ollama::Store`] |
//!
//! Files come from strangers, so nothing in one is believed before it is checked: every way in
//! which a file can be wrong is a variant of [`HeaderError`] or [`MetadataError`], and no input
//! makes this crate panic or allocate more than a small multiple of the bytes it was given.
//!
//! # Example
//!
//! ```
//! use rullama_gguf::{Format, MemorySource, Model, Writer};
//!
//! # pollster::block_on(async {
//! // A file with one metadata entry and one tensor of 64 values, made in memory.
//! let values: Vec<f32> = (0..64).map(|i| i as f32 / 8.0).collect();
//! let mut blocks = vec![0; 2 * Format::Q8_0.block_bytes()];
//! Format::Q8_0.encode(&values, &mut blocks)?;
//!
//! let mut writer = Writer::new();
//! writer.set("general.architecture", "gemma4")?;
//! writer.add_tensor("ramp", &[64], Format::Q8_0)?;
//! let mut body = writer.begin(Vec::new())?;
//! body.write_tensor(&blocks)?;
//! let file = body.finish()?;
//!
//! // Open it again and decode the tensor.
//! let model = Model::open(Box::new(MemorySource::new(file))).await?;
//! assert_eq!(model.header().metadata().str("general.architecture")?, "gemma4");
//!
//! let ramp = model.tensor("ramp").expect("the tensor was just written");
//! let bytes = model.read(ramp.range()).await?;
//! let mut decoded = vec![0.0; 64];
//! ramp.format.decode(&bytes, &mut decoded)?;
//! assert!((decoded[63] - values[63]).abs() < 0.05);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! # Features
//!
//! `http` (native only) adds [`HttpSource`]; `ollama` adds [`ollama`]. Both are on by default; without
//! them the crate depends on little more than the standard library. `parallel` adds a way to write files
//! with all threads.

mod error;
pub mod format;
mod header;
mod metadata;
mod mix;
mod model;
#[cfg(feature = "ollama")]
pub mod ollama;
#[cfg(feature = "parallel")]
mod parallel;
mod source;
mod split;
mod value;
mod writer;

pub use error::{HeaderError, MetadataError, ModelError, SourceError, WriteError, error_chain};
pub use format::{Format, FormatError};
pub use header::{Header, Shape, Tensor};
pub use metadata::Metadata;
pub use mix::{Mix, Role, UnknownMix, is_favoured};
#[cfg(any(unix, windows))]
pub use model::open_path;
pub use model::{Model, ModelTensor};
#[cfg(feature = "parallel")]
pub use parallel::{PIECE_VALUES, write_pieces};
#[cfg(any(unix, windows))]
pub use source::FileSource;
pub use source::{ByteSource, MemorySource, PartsSource, ReadFuture};
#[cfg(all(feature = "http", not(target_family = "wasm")))]
pub use source::{HttpLimits, HttpSource};
pub use split::SplitName;
pub use value::{Array, Strings, Value, ValueType};
pub use writer::{ArrayElement, TensorWriter, WriteValue, Writer};
