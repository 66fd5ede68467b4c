//! Single GPU kernels, outside a model: tests compare them with the reference, and the examples time them.
//!
//! It is a crate of its own, and not published, so that the library `rullama-gpu` stays free of what only tests and
//! measurements use.
//!
//! ```no_run
//! # async fn example() -> Result<(), rullama_gpu::GpuError> {
//! use rullama_gpu::{Fragment, Gpu, GpuOptions, Kernel, KernelSpec, params::ElementwiseParams};
//! use rullama_gpu_lab::{Lab, Step};
//!
//! let gpu = Gpu::open(&GpuOptions::default()).await?;
//! let lab = Lab::new(&gpu);
//! let (a, b, y) = (lab.floats(&[1.0, 2.0]), lab.floats(&[3.0, 4.0]), lab.floats(&[0.0; 2]));
//! let spec = KernelSpec::new(Kernel::Elementwise).with(Fragment::Reduce).with(Fragment::Add);
//! let spec = spec.constant("LANES", 64).constant("EACH", 1);
//! let params = ElementwiseParams { width: 2, b_at: 0, b_period: 2, constant: 0.0, other: 0.0 };
//! let kernel = lab.prepare(&spec, &[params.into()], &[("a", &a), ("b", &b), ("y", &y)], [1, 1, 1]);
//! lab.run(&[kernel], &Step::new(1, 0));
//! assert_eq!(lab.read(&y).await?, [4.0, 6.0]);
//! # Ok(())
//! # }
//! ```
//!
//! The examples print times. The thresholds and tile sizes in `tuning.rs` of `rullama-gpu` come from them.
//!
//! | example | what it times |
//! |---|---|
//! | `lab_attention` | attention of one row and of many |
//! | `lab_tile`, `lab_matrix` | matrix products of many rows, in plain tiles and on matrix units |
//! | `lab_few` | matrix products of two to sixteen rows |
//! | `lab_experts` | matrix products of a mixture of experts |
//! | `lab_sample` | choosing a token |
//! | `lab_model` | the steps of a whole model, kernel by kernel |

mod kernels;
pub mod linear;
mod sampling;

use rullama_gpu::{Gpu, GpuError, standalone};

pub use kernels::Lab;
pub use rullama_gpu::standalone::{Chosen, Prepared, Step};
pub use sampling::SampleLab;

/// Waits until everything submitted is done.
fn wait(gpu: &Gpu) -> Result<(), GpuError> {
    let lost = |error: wgpu::PollError| GpuError::Lost { reason: error.to_string() };
    let (device, _) = standalone::device(gpu);
    device.poll(wgpu::PollType::wait_indefinitely()).map_err(lost)?;
    Ok(())
}
