//! Runs Gemma 4 models: from logits to the next token, and from tokens to the end of a reply.
//!
//! | to | use |
//! |---|---|
//! | read the options of a request | [`GenerateOptions::from_layers`] |
//! | choose the next token | [`Sampler`] |
//! | end a reply at a text, across chunks | [`StopStrings`] |
//! | end a reply that goes round in circles | [`RepetitionGuard`] |
//!
//! Options, their defaults and the order of the sampler's steps are those of Ollama for Gemma 4.
//!
//! # Example
//!
//! ```
//! use rullama_engine::{GenerateOptions, Sampler};
//! use serde_json::json;
//!
//! // The model's own parameters, then those of the request.
//! let model = json!({"top_k": 64, "top_p": 0.95});
//! let request = json!({"temperature": 0.7, "seed": 42, "stop": ["\n\n"]});
//! let (Some(model), Some(request)) = (model.as_object(), request.as_object()) else { unreachable!() };
//! let (options, warnings) = GenerateOptions::from_layers(model, request)?;
//! assert!(warnings.is_empty());
//!
//! let mut sampler = Sampler::new(&options.sampling, &[], 0)?;
//! let logits = [0.5, 3.0, -1.0, 2.5];
//! let first = sampler.sample(&logits, &[])?;
//! assert!(logits.get(first.id as usize).is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backend;
#[cfg(feature = "cpu")]
mod cpu;
mod engine;
mod error;
mod generation;
mod options;
mod repetition;
mod reply;
mod sampler;
mod session;
mod stop;

pub use backend::{Backend, Logits, Pending, State, StepProgress, Watcher};
pub use engine::{Engine, KvFormat, LoadOptions};
pub use error::EngineError;
pub use generation::{FinishReason, Generation, Token, Usage};
pub use options::{GenerateOptions, OptionError, OptionWarning, SamplingOptions};
pub use repetition::RepetitionGuard;
pub use reply::Reply;
pub use sampler::{SampleError, Sampled, Sampler, TokenLogprob};
pub use session::{ChatOptions, Session};
pub use stop::{Released, StopStrings};
