//! Graphs on the CPU, for speed.
//!
//! Weights stay in the blocks of their file. A product unpacks blocks to bytes and multiplies these with activations that
//! were quantised to eight bits, 32 values to a scale; formats of floats are multiplied as floats. Rows of weights are
//! spread over the machine's threads; no sum is, so results depend neither on how many there are nor on how many tokens a
//! step has. `rullama-reference` computes the same graph without any rounding and without any haste: tests compare the two.
//!
//! ```
//! # use std::rc::Rc;
//! # use rullama_gemma::{Config, Outputs, text};
//! # use rullama_gguf::{MemorySource, Model};
//! # use rullama_graph::CacheFormat;
//! use rullama_cpu::{Caches, Executor, Step};
//!
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/micro-e2b-Q8_0.gguf");
//! # let source = MemorySource::new(std::fs::read(path).unwrap());
//! # pollster::block_on(async {
//! # let model = Rc::new(Model::open(Box::new(source)).await?);
//! let graph = text(&model, &Config::read(&model)?, Outputs::Last)?;
//! let executor = Executor::new(model, 1 << 30);
//! let mut caches = Caches::new(&graph, CacheFormat::F32);
//!
//! let step = Step::tokens(&[2, 610, 483]);
//! let logits = executor.run(&graph, &mut caches, &step, &mut |_, _| {}).await?.swap_remove(0);
//! assert_eq!((logits.width, caches.len()), (2048, 3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

#![expect(
    clippy::needless_range_loop,
    reason = "loops over the lanes of several arrays are vectorised, and read best with an index"
)]

mod activations;
mod attend;
mod caches;
mod error;
mod executor;
mod experts;
mod float;
mod interpreter;
mod kernels;
mod memory;
mod parallel;
mod product;
mod rope;
mod step;
#[cfg(any(not(target_family = "wasm"), target_feature = "atomics"))]
mod team;
#[cfg(all(target_family = "wasm", target_feature = "atomics"))]
pub mod threads;
mod tower;
mod unpack;
mod weights;

pub use caches::Caches;
pub use error::CpuError;
pub use executor::{Executor, Output};
pub use step::{Row, Step};
