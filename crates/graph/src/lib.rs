//! A model as a value.
//!
//! A [`Graph`] is a list of coarse operations ([`Op`], the whole vocabulary on one screen) on
//! values of two dimensions: rows, one for each token of the step or for each member of another
//! [`Domain`], and a width. It has named inputs and outputs. A model is described with [`Tensor`]
//! handles, so that a layer reads like the paper:
//!
//! ```
//! use rullama_graph::{Builder, Rows, WeightInfo};
//!
//! let builder = Builder::new();
//! let table = builder.weight(WeightInfo::matrix("token_embd.weight", 64, 1000).bytes(256_000));
//! let norm = builder.weight(WeightInfo::vector("output_norm.weight", 64).bytes(256));
//!
//! let x = builder.embed(table, 8.0, Default::default()).named("embedded");
//! let logits = x.last_row().rms_norm(norm, 1e-6).linear(table).soft_cap(30.0).named("logits");
//! let graph = builder.finish(logits);
//!
//! assert_eq!(graph.value(graph.output()).shape.width, 1000);
//! assert_eq!(graph.value(graph.output()).shape.rows, Rows::Last);
//! assert_eq!(
//!     graph.to_string().lines().next(),
//!     Some("%0 step×64 = embed token_embd.weight scale 8 soft given    // embedded")
//! );
//! ```
//!
//! Executors walk the list: one interprets it in plain loops, another lowers it to GPU dispatches.
//! Shapes are checked while building; a mismatch there is a mistake in a model's description and
//! panics at the line that made it. What a file says is checked before, where it is read.

mod cache_format;
mod cost;
mod display;
mod graph;
mod mask;
mod op;
mod shape;
mod tensor;
mod weight;

pub use cache_format::{CacheFormat, UnknownCacheFormat};
pub use cost::{Cost, StepExtent};
pub use graph::{Builder, Graph, Node};
pub use mask::{Ahead, AttendShape, Mask};
pub use op::{Activation, Attended, Convolution, Op, Rope, SoftRows};
pub use shape::{Domain, DomainInfo, DomainRows, RowCounts, Rows, Shape};
pub use tensor::Tensor;
pub use weight::{AdapterPoint, Cache, CacheInfo, Input, InputInfo, Value, Weight, WeightInfo};
