//! Hugging Face checkpoints of Gemma 4 as GGUF files.
//!
//! A checkpoint is a folder: `config.json`, `model.safetensors` or several files with an index, `tokenizer.json` and a
//! few smaller files. [`plan`] reads their headers, checks every tensor against the configuration and decides what
//! the file will hold; [`Plan::write`] streams the weights through, quantised on the way, with bounded memory however
//! large the checkpoint is. The decoder and the towers for images and sound go into one file, named as in the
//! files that Ollama publishes; without the towers, llama.cpp reads it too.
//!
//! Nothing is left out silently: a tensor that is missing, of another shape, or without a place in the file is an
//! error.
//!
//! # Example
//!
//! ```
//! use rullama_convert::ConvertOptions;
//! use rullama_gguf::{MemorySource, Mix, Model};
//!
//! # pollster::block_on(async {
//! let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/convert/nano-e2b");
//! let options = ConvertOptions { mix: Mix::Q8_0, ..ConvertOptions::default() };
//! let plan = rullama_convert::plan(folder.as_ref(), &options)?;
//!
//! let mut file = Vec::new();
//! plan.write(&mut file, |_done, _of| ())?;
//! let model = Model::open(Box::new(MemorySource::new(file))).await?;
//! assert!(model.tensor("v.patch_embd.weight").is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

mod collect;
mod config;
mod error;
mod files;
mod metadata;
mod plan;
mod rule;
mod table;
mod tokenizer;
mod values;
mod weights;

use std::path::Path;

pub use error::{ConvertError, TensorShape};
pub use plan::{Plan, PlannedTensor};
pub use rule::TensorRule;
pub use rullama_gguf::Mix;

/// What can be chosen besides the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvertOptions {
    /// How weights are stored.
    pub mix: Mix,
    /// How single tensors are stored in place of that; of several rules for a tensor, the last counts.
    pub rules: Vec<TensorRule>,
    /// Whether what makes soft tokens of images and sound goes into the file, where the checkpoint has it.
    ///
    /// llama.cpp keeps that in a file of its own and refuses a text model that has it too.
    pub towers: bool,
    /// What the file calls the model; otherwise the name of the checkpoint's folder.
    pub name: Option<String>,
}

impl Default for ConvertOptions {
    fn default() -> Self {
        Self { mix: Mix::default(), rules: Vec::new(), towers: true, name: None }
    }
}

/// What the file of a checkpoint will hold.
///
/// # Errors
///
/// If a file of the checkpoint is missing or damaged, or holds something else than a Gemma 4 model.
pub fn plan(folder: &Path, options: &ConvertOptions) -> Result<Plan, ConvertError> {
    Plan::new(folder, options)
}
