//! Gemma 4 models with random weights.
//!
//! A file made here has the names, shapes, formats, metadata and tokenizer layout of a released model, and
//! weights that keep activations and logits in sane ranges; only the text it writes is noise. Whatever runs
//! a real model runs it, so that correctness, speed and memory can be tested without downloading one. Every
//! released size has a tiny sibling with the same structure and a few megabytes.
//!
//! Each weight is a function of the seed, the tensor's name and the weight's position, so the same options
//! give the same bytes whatever the machine and the number of threads.
//!
//! # Example
//!
//! ```
//! use rullama_gguf::{MemorySource, Model};
//! use rullama_synth::{Mix, Preset, SynthOptions};
//!
//! # pollster::block_on(async {
//! // What a file would hold, before it is written.
//! let real: Preset = "e2b".parse()?;
//! let plan = rullama_synth::plan(real, &SynthOptions { mix: Mix::Q4_K_M, ..SynthOptions::default() })?;
//! assert_eq!(plan.tensors().len(), 601);
//!
//! // A tiny one, in memory.
//! let options = SynthOptions { mix: Mix::Q8_0, vocabulary: Some(512), ..SynthOptions::default() };
//! let file = rullama_synth::tiny("tiny-e2b", &options)?;
//! let model = Model::open(Box::new(MemorySource::new(file))).await?;
//! assert_eq!(model.metadata().u32("gemma4.block_count")?, 10);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

mod blank;
mod error;
mod fill;
mod metadata;
mod output;
mod plan;
mod preset;
mod random;
mod shape;
mod text;
mod towers;
mod vocabulary;
mod words;

use std::io;

pub use blank::Blank;
pub use error::SynthError;
pub use plan::{Plan, PlannedTensor};
pub use preset::Preset;
pub use rullama_gguf::Mix;
pub use vocabulary::{LARGEST_VOCABULARY, REAL_VOCABULARY, SMALLEST_VOCABULARY};

/// What can be chosen besides the preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SynthOptions {
    /// How weights are stored.
    pub mix: Mix,
    /// Which of all possible random weights.
    pub seed: u64,
    /// How many tokens; without it, as many as [`Preset::default_vocabulary`] says.
    pub vocabulary: Option<u32>,
    /// Whether the file also holds what makes soft tokens of images and sound, as Ollama's files do.
    ///
    /// llama.cpp keeps that in a file of its own and refuses a text model that has it too.
    pub towers: bool,
}

/// What a file with these options will hold.
///
/// # Errors
///
/// If the vocabulary has a size for which none can be made.
pub fn plan(preset: Preset, options: &SynthOptions) -> Result<Plan, SynthError> {
    Plan::new(preset, options)
}

/// Writes a model to `output`, using all threads of the current rayon pool and bounded memory.
///
/// `progress` is told how many bytes of weights were written, and of how many.
///
/// # Errors
///
/// For the reasons that [`plan`] has, and if the output cannot be written.
pub fn write(
    preset: Preset,
    options: &SynthOptions,
    output: impl io::Write + Send,
    progress: impl FnMut(u64, u64) + Send,
) -> Result<(), SynthError> {
    plan(preset, options)?.write(output, progress)
}

/// A model in memory, by the name of its preset. Meant for the tiny ones, in tests.
///
/// # Errors
///
/// If there is no such preset, and for the reasons that [`plan`] has.
pub fn tiny(name: &str, options: &SynthOptions) -> Result<Vec<u8>, SynthError> {
    let mut file = Vec::new();
    write(name.parse()?, options, &mut file, |_, _| ())?;
    Ok(file)
}
