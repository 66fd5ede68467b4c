//! Kernels, composed of files of plain WGSL.
//!
//! | file | idea |
//! |---|---|
//! | `files` | the WGSL files: bodies, and fragments for their slots |
//! | `spec` | the recipe of a kernel, which is also its pipeline's key and label |
//! | `bindings` | the buffers that a kernel's text declares |
//! | `uniform`, `params` | the uniform variables of kernels as Rust structs |
//! | `pipelines` | the pipelines of a device |

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
