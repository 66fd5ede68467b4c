//! The engine for JavaScript: a thin shell that converts values and forwards calls.
//!
//! | file | idea |
//! |---|---|
//! | `on_gpu`, `on_cpu` | the two backends, of which a build has one: what differs between them |
//! | `engine` | a loaded model: `WebEngine` |
//! | `session` | a conversation and its replies: `WebSession` |
//! | `attachment` | an image or a sound for a conversation: `WebAttachment` |
//! | `inspection` | whether a model can be loaded, from its header alone |
//! | `examination` | what the GPU can do, and whether it computes correctly |
//! | `source` | a `ByteSource` whose bytes JavaScript reads |
//! | `cancel` | a handle that cancels a call |
//! | `breath` | lets other work have its turn while the CPU computes |
//! | `gate` | pauses replies while the page is hidden |
//! | `options`, `info` | options from JSON, reports to JSON |
//! | `error` | errors with the engine's codes |
//! | `host` | the clock, random numbers, and the handler of panics |
//! | `threads` | on the CPU, with shared memory: what the workers that help call |
//!
//! Arguments and results are JSON text, except for token ids and the bytes of models. Programs use the npm package `rullama`;
//! nothing else should call this crate. Outside of a browser the crate is empty.
//!
//! ```js
//! import init, { Cancel, WebEngine } from "./rullama.js";
//!
//! await init();
//! const source = { name: "model.gguf", length, read: async (offset, length) => bytes };
//! const engine = await WebEngine.load([source], undefined, "{}", (status, loaded, total) => {}, new Cancel());
//! const reply = await engine.session().chat('[{"role":"user","content":"Hello"}]', [], "{}", (delta) => {}, new Cancel());
//! ```
#![cfg(all(target_family = "wasm", target_os = "unknown"))]

mod attachment;
#[cfg_attr(feature = "gpu", path = "on_gpu.rs")]
#[cfg_attr(not(feature = "gpu"), path = "on_cpu.rs")]
mod backend;
#[cfg(not(feature = "gpu"))]
mod breath;
mod cancel;
mod engine;
mod error;
#[cfg(feature = "gpu")]
mod examination;
mod gate;
mod host;
mod info;
mod inspection;
mod options;
mod session;
mod source;
#[cfg(all(not(feature = "gpu"), target_feature = "atomics"))]
mod threads;

pub use attachment::WebAttachment;
pub use cancel::Cancel;
pub use engine::WebEngine;
#[cfg(feature = "gpu")]
pub use examination::examine;
pub use host::on_panic;
pub use inspection::inspect;
pub use session::WebSession;
pub use source::JsByteSource;
#[cfg(all(not(feature = "gpu"), target_feature = "atomics"))]
pub use threads::{crash, help, join, thread_parts};
