//! The Gemma 4 family, described once.
//!
//! [`Config::read`] takes a model's metadata and checks it; nothing after it looks at metadata
//! again. [`text`] checks the tensors and describes the decoder as a graph, which executors run:
//!
//! ```
//! # use rullama_gemma::{Config, Outputs, text};
//! # use rullama_gguf::{MemorySource, Model};
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/micro-e2b-Q8_0.gguf");
//! # let source = MemorySource::new(std::fs::read(path).unwrap());
//! # let model = pollster::block_on(Model::open(Box::new(source)))?;
//! let config = Config::read(&model)?;
//! let graph = text(&model, &config, Outputs::Last)?;
//! assert_eq!(graph.value(graph.output()).shape.width, config.vocabulary);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | member | what is special |
//! |---|---|
//! | E2B, E4B | per-layer embeddings; late layers borrow the keys and values of earlier ones |
//! | 12B, 31B | global layers use their keys as values, and have fewer key heads |
//! | 26B-A4B | the same, and experts beside the dense feed-forward |
//!
//! What makes soft rows of pictures and of sound is described by [`vision`] and [`audio`], as graphs of their own.
//!
//! Nothing of this is hard-coded: what a model has follows from its metadata and tensors.

mod attention;
mod audio;
mod checks;
mod clip;
mod config;
mod error;
mod experts;
mod feed_forward;
mod keys;
mod layer;
mod loader;
mod media;
mod names;
mod per_layer_embedding;
mod text;
mod vision;

pub use audio::{AudioConfig, AudioInputs, AudioTower, audio};
pub use checks::{Warning, warnings};
pub use config::{Config, ExpertConfig, KvSource, LayerConfig, per_layer_width};
pub use error::{GemmaError, TowerError};
pub use keys::{AudioKeys, VisionKeys};
pub use media::Medium;
pub use text::{Outputs, text};
pub use vision::{Gelu, Patches, VisionConfig, VisionInputs, VisionTower, vision};
