//! Graphs on the GPU, through wgpu: Vulkan, Metal, DX12, and WebGPU in a browser.
//!
//! A graph is lowered once to a plan: a flat list of dispatches with their pipelines and bind groups. A step writes
//! a few numbers and replays it. Kernels are plain WGSL, put together from a body and a fragment for each of its
//! slots, and need nothing that WebGPU does not guarantee: no subgroups, no `shader-f16`, 128 MiB bindings, 16 KiB of
//! workgroup memory. Subgroups are used where a device has them. Tokens are chosen on the GPU, several steps ahead of
//! the host ([`GpuState::begin`]).
//!
//! ```no_run
//! # use std::rc::Rc;
//! # async fn example(model: Rc<rullama_gguf::Model>, graph: rullama_graph::Graph) -> Result<(), rullama_gpu::GpuError> {
//! use rullama_gpu::{Gpu, GpuModel, GpuOptions, GpuWeights, ModelOptions};
//!
//! let gpu = Gpu::open(&GpuOptions::default()).await?;
//! let weights = GpuWeights::new(gpu, model);
//! let options = ModelOptions::default().context(4096);
//! let model = Rc::new(GpuModel::load(&weights, graph, options, &mut |_, _| {}).await?);
//! let mut state = model.state()?;
//! let logits = state.step(&[2, 105, 2364]).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Before a model is loaded, kernels answer known cases ([`self_test`]) and its [`Budget`] is compared with what there is.
//! A lost GPU is an error; [`GpuWeights::reopen`] and [`GpuModel::reload`] begin anew.

pub mod attention;
mod bandwidth;
mod budget;
mod cache_layout;
mod catalogue;
mod device;
mod encoder;
mod error;
mod experts;
mod few;
mod fitting;
mod health;
mod kernel;
mod lower;
mod matrices;
mod model;
mod options;
mod plan;
mod pool;
mod readback;
mod report;
mod rows;
mod run;
mod sample;
mod self_test;
#[doc(hidden)]
pub mod standalone;
mod state;
mod step_block;
mod step_buffers;
mod tiles;
mod timing;
mod tuning;
pub mod weights;

pub use bandwidth::measure_bandwidth;
pub use budget::{Bound, Budget};
pub use cache_layout::CacheLayout;
#[doc(hidden)]
pub use catalogue::Catalogue;
pub use device::{DeviceProfile, Gpu, GpuOptions};
pub use encoder::{EncoderOptions, GpuEncoder};
pub use error::GpuError;
pub use experts::Experts;
pub use few::FewTiles;
pub use fitting::Fit;
pub use kernel::{
    Dialect, Fragment, Kernel, KernelSpec, Uniform, UniformField, UniformLayout, UniformValue, params,
};
pub use matrices::MatrixTiles;
pub use model::GpuModel;
pub use options::ModelOptions;
pub use report::{DispatchReport, PlanReport};
pub use rows::StepSize;
pub use rullama_graph::CacheFormat;
pub use run::Footprint;
pub use sample::Sampling;
pub use self_test::{Fallback, SelfTestResult, self_test};
pub use state::{GpuState, RowInput, StepInput};
pub use tiles::Tiles;
pub use weights::{GpuWeights, Residency};
