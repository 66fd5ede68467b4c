//! The engine for JavaScript: a thin shell that converts and forwards.
//!
//! | file | idea |
//! |---|---|
//! | `engine` | a loaded model: `WebEngine` |
//! | `session` | a conversation and its replies: `WebSession` |
//! | `examination` | what the GPU can do, and whether it computes correctly |
//! | `source` | bytes that JavaScript reads, as a `ByteSource` |
//! | `cancel` | a handle that ends what is under way |
//! | `gate` | holds replies back while nobody looks |
//! | `options`, `info` | what comes in and what goes out, as JSON |
//! | `error` | errors with the engine's codes |
//! | `host` | the clock, entropy, and where panics are told |
//!
//! What crosses the border is JSON text, except for token ids and the bytes of models. The npm package `rullama` is the
//! interface for people; nothing else should call this one. Outside of a browser the crate is empty.
//!
//! ```js
//! import init, { Cancel, WebEngine } from "./rullama.js";
//!
//! await init();
//! const source = { name: "model.gguf", length, read: async (offset, length) => bytes };
//! const engine = await WebEngine.load([source], "{}", (status, loaded, total) => {}, new Cancel());
//! const reply = await engine.session().chat('[{"role":"user","content":"Hello"}]', "{}", (delta) => {}, new Cancel());
//! ```
#![cfg(all(target_family = "wasm", target_os = "unknown"))]

mod cancel;
mod engine;
mod error;
mod examination;
mod gate;
mod host;
mod info;
mod options;
mod session;
mod source;

pub use cancel::Cancel;
pub use engine::WebEngine;
pub use examination::examine;
pub use host::on_panic;
pub use session::WebSession;
pub use source::JsByteSource;
