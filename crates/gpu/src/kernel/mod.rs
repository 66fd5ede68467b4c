//! Kernels, put together from files of plain WGSL.
//!
//! | file | idea |
//! |---|---|
//! | `files` | the pieces: bodies, and fragments for their slots |
//! | `spec` | the recipe of a kernel, which is also its pipeline's key and label |
//! | `bindings` | what a kernel's text says about the buffers it needs |
//! | `uniform`, `params` | the uniform variables of kernels as Rust structs |
//! | `pipelines` | the pipelines made so far |

mod bindings;
mod files;
pub mod params;
mod pipelines;
mod spec;
mod uniform;

pub(crate) use bindings::{Access, Binding};
pub use files::{Fragment, Kernel};
pub(crate) use pipelines::Pipelines;
pub use spec::{Dialect, KernelSpec};
pub use uniform::{Uniform, UniformField, UniformLayout, UniformValue};
