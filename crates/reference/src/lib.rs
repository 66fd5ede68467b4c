//! Graphs interpreted on the CPU: slow, obvious, and the yardstick for every kernel.
//!
//! Each operation is one function of plain loops over f32 in a file of its own name. Weights are decoded
//! from their blocks where they are used, row by row, and streamed from the model's source: a model of
//! several gigabytes runs in whatever memory [`Weights`] may hold. Rows of matrices are spread over the
//! machine's threads; no sum is, so results do not depend on how many there are, nor on how many tokens a
//! step has.
//!
//! ```
//! # use std::rc::Rc;
//! # use rullama_gemma::{Config, Outputs, text};
//! # use rullama_gguf::{MemorySource, Model};
//! use rullama_reference::{Caches, CacheFormat, Step, Weights, run};
//!
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/micro-e2b-Q8_0.gguf");
//! # let source = MemorySource::new(std::fs::read(path).unwrap());
//! # pollster::block_on(async {
//! # let model = Rc::new(Model::open(Box::new(source)).await?);
//! let graph = text(&model, &Config::read(&model)?, Outputs::Last)?;
//! let weights = Weights::new(model, 1 << 30);
//! let mut caches = Caches::new(&graph, CacheFormat::F32);
//!
//! let logits = run(&graph, &weights, &mut caches, &Step::tokens(&[2, 610, 483]), &mut ()).await?;
//! assert_eq!((logits.rows(), caches.len()), (1, 3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

mod activate;
mod attend;
mod attend_relative;
mod caches;
mod combine;
mod convolve;
mod elementwise;
mod embed;
mod error;
mod expert_linear;
mod gelu_mul;
mod interpreter;
mod layer_norm;
mod linear;
mod matrix;
mod rms_norm;
mod rope;
mod rotate;
mod route;
mod step;
mod weights;

pub use caches::Caches;
pub use error::ReferenceError;
pub use interpreter::{Watch, run, run_together};
pub use matrix::Matrix;
pub use rullama_graph::CacheFormat;
pub use step::{Row, Sequence, Step};
pub use weights::Weights;
