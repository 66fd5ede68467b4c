//! Kernels that run without a model: the self-test and the measurement of bandwidth need this.
//!
//! | file | idea |
//! |---|---|
//! | this one | binds the buffers of a kernel, runs kernels in a step, reads a buffer back |
//! | `sampling` | chooses tokens from logits that the host provides |
//!
//! The module is public because `rullama-gpu-lab` tests and times single kernels with it. It is hidden because it is not
//! part of the library's interface and may change at any time.

mod sampling;

use wgpu::util::DeviceExt as _;

pub use sampling::{Chosen, LogitChooser};

use crate::{
    Gpu, GpuError, KernelSpec, UniformValue,
    kernel::Access,
    readback,
    rows::{JoinedLayers, RowTable, TABLE_BYTES},
};

/// A step of one conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    /// The number of rows.
    pub rows: u32,
    /// The position of the first row.
    pub position: u32,
    /// Ranges of rows that attend to each other.
    pub spans: Vec<std::ops::Range<usize>>,
}

impl Step {
    /// Rows from a position on, none of which sees a later one.
    pub fn new(rows: u32, position: u32) -> Self {
        Self { rows, position, spans: Vec::new() }
    }
}

/// A kernel with its buffers, ready to run.
pub struct Prepared {
    pipeline: wgpu::ComputePipeline,
    bind_group: wgpu::BindGroup,
    workgroups: [u32; 3],
}

/// Compiles a kernel and binds its uniforms, and its buffers by the names that the kernel uses.
///
/// # Panics
///
/// If a uniform or a buffer is missing.
pub fn prepare(
    gpu: &Gpu,
    spec: &KernelSpec,
    uniforms: &[UniformValue],
    buffers: &[(&str, &wgpu::Buffer)],
    workgroups: [u32; 3],
) -> Prepared {
    let pipeline = gpu.pipelines().get(gpu, spec);
    let written: Vec<wgpu::Buffer> =
        uniforms.iter().map(|value| uniform(gpu, value.layout().variable, value.bytes())).collect();
    let bind_group = pipeline.bind_group(gpu, None, |binding| {
        let buffer = match binding.access {
            Access::Uniform => {
                let found = uniforms.iter().position(|uniform| binding.is_for(uniform.layout()));
                found.map(|index| &written[index])
            }
            _ => buffers.iter().find(|(name, _)| *name == binding.name).map(|&(_, buffer)| buffer),
        };
        buffer.unwrap_or_else(|| panic!("{spec} needs `{}`", binding.name)).as_entire_binding()
    });
    Prepared { pipeline: pipeline.pipeline, bind_group, workgroups }
}

/// Submits kernels that run one after another in one step.
pub fn run(gpu: &Gpu, kernels: &[Prepared], step: &Step) {
    let mut table = RowTable::prompt(0, step.position, step.rows);
    for span in &step.spans {
        table.join(span.clone(), JoinedLayers { global: true, sliding: true });
    }
    let mut contents = table.bytes();
    contents.resize(TABLE_BYTES as usize, 0);
    let step = gpu.pipelines().step_group(gpu, &uniform(gpu, "step", &contents));
    let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_bind_group(0, &step, &[]);
        for kernel in kernels {
            let [x, y, z] = kernel.workgroups;
            pass.set_pipeline(&kernel.pipeline);
            pass.set_bind_group(1, &kernel.bind_group, &[]);
            pass.dispatch_workgroups(x, y, z);
        }
    }
    gpu.queue.submit([encoder.finish()]);
}

/// The floats in a buffer, once everything submitted before is done.
pub async fn read(gpu: &Gpu, buffer: &wgpu::Buffer) -> Result<Vec<f32>, GpuError> {
    let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
    let copy = gpu.buffer("read", buffer.size(), usage);
    let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(buffer, 0, &copy, 0, buffer.size());
    let submission = gpu.queue.submit([encoder.finish()]);
    readback::floats(gpu, &copy, buffer.size(), submission).await
}

/// The device and its queue, for buffers and timing of the caller's own.
pub fn device(gpu: &Gpu) -> (&wgpu::Device, &wgpu::Queue) {
    (&gpu.device, &gpu.queue)
}

fn uniform(gpu: &Gpu, label: &str, contents: &[u8]) -> wgpu::Buffer {
    let (label, usage) = (Some(label), wgpu::BufferUsages::UNIFORM);
    gpu.device.create_buffer_init(&wgpu::util::BufferInitDescriptor { label, contents, usage })
}
