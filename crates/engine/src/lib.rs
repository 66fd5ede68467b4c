//! Runs Gemma 4 models: [`Engine`] (a loaded model) → [`Session`] (one conversation) → [`Reply`] (one streamed answer).
//!
//! | to | use |
//! |---|---|
//! | load a model | `Engine::load`, or [`Engine::with_backend`] for a backend of your own |
//! | check a model without reading its weights | `Engine::inspect_on` |
//! | encode an image or a sound | [`Engine::encode_image`], [`Engine::encode_sound`], [`ChatOptions::media`] |
//! | hold a conversation | [`Session::send`], or [`Session::chat`] with all messages each time |
//! | continue tokens | [`Session::generate`] |
//! | read the options of a request | [`GenerateOptions::from_layers`] |
//! | choose the next token | [`Sampler`] |
//! | end a reply at a text, across chunks | [`StopStrings`] |
//!
//! A session compares a prompt with the tokens that the model has read and computes only the difference. Dropping a
//! reply stops the model and leaves the session valid. Options, their defaults and the order of the sampler's steps
//! are those of Ollama for Gemma 4.
//!
//! # Example
//!
//! ```
//! use rullama_chat::{Delta, Message};
//! use rullama_engine::{ChatOptions, Engine, GenerateOptions, LoadOptions, SamplingOptions};
//! # use rullama_gguf::{MemorySource, Model};
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/tiny-e2b-Q4_K_M.gguf");
//! # let source = MemorySource::new(std::fs::read(path).unwrap());
//! # pollster::block_on(async {
//! # let model = Model::open(Box::new(source)).await?;
//! let engine = Engine::load(model, &LoadOptions::default().context(4096))?;
//! let mut session = engine.session()?;
//!
//! let generate = GenerateOptions { sampling: SamplingOptions::GREEDY, ..GenerateOptions::default() };
//! let options = ChatOptions { generate, think: false, ..ChatOptions::default() };
//! let question = Message::user("What is the capital of France? Answer in one word.");
//! let mut reply = session.send(question, &options)?;
//! let mut answer = String::new();
//! while let Some(delta) = reply.next().await {
//!     if let Delta::Answer(text) = delta? {
//!         answer.push_str(&text);
//!     }
//! }
//! assert_eq!(answer, "Paris");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! # Features
//!
//! `cpu`, on by default, adds `Engine::load`, and `Engine::load_reference`, which is exact and slow. `gpu` adds `Engine::load_on`.

mod backend;
#[cfg(feature = "cpu")]
mod cpu;
#[cfg(feature = "cpu")]
mod cpu_tower;
mod engine;
mod entropy;
mod error;
mod generation;
#[cfg(feature = "gpu")]
mod gpu;
#[cfg(feature = "gpu")]
mod gpu_tower;
#[cfg(feature = "gpu")]
mod gpu_towers_alone;
#[cfg(feature = "gpu")]
mod losses;
mod media;
mod options;
mod prompt_style;
#[cfg(feature = "cpu")]
mod reference;
#[cfg(feature = "cpu")]
mod reference_tower;
mod repetition;
mod reply;
mod rows;
mod sampler;
mod session;
mod steps;
mod stop;
mod text;
mod tokens;

pub use backend::{Backend, Choosing, LogitRows, Logits, Pending, Recovery, State, StepProgress, Watcher};
#[cfg(feature = "gpu")]
pub use engine::Inspection;
pub use engine::{Engine, LoadOptions};
pub use entropy::Entropy;
pub use error::EngineError;
pub use generation::{FinishReason, Generation, Token, Usage};
#[cfg(feature = "gpu")]
pub use losses::Unsteady;
pub use media::{Attachment, EncodeProgress, Encoder, Media};
pub use options::{GenerateOptions, OptionError, OptionRange, OptionWarning, SamplingOptions};
pub use prompt_style::prompt_style;
pub use repetition::RepetitionGuard;
pub use reply::Reply;
pub use rows::{MediaRows, MediaSpan, PromptRows, StepRow, StepRows};
pub use rullama_gemma::Medium;
pub use rullama_graph::CacheFormat;
pub use sampler::{SampleError, Sampled, Sampler, TokenLogprob};
pub use session::{ChatOptions, Session};
pub use stop::{Released, StopStrings};
