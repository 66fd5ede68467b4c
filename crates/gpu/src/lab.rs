//! One kernel alone: for tests of kernels against the reference, and for measuring them.
//!
//! ```no_run
//! # async fn example() -> Result<(), rullama_gpu::GpuError> {
//! use rullama_gpu::{Fragment, Gpu, GpuOptions, Kernel, KernelSpec, lab::{Lab, Step}, params::ElementwiseParams};
//!
//! let gpu = Gpu::open(&GpuOptions::default()).await?;
//! let lab = Lab::new(&gpu);
//! let (a, b, y) = (lab.floats(&[1.0, 2.0]), lab.floats(&[3.0, 4.0]), lab.floats(&[0.0; 2]));
//! let spec = KernelSpec::new(Kernel::Elementwise).with(Fragment::Reduce).with(Fragment::Add).constant("LANES", 64);
//! let params = ElementwiseParams { width: 2, b_at: 0, b_stride: 1, constant: 0.0 };
//! let kernel = lab.prepare(&spec, &[params.into()], &[("a", &a), ("b", &b), ("y", &y)], [1, 1, 1]);
//! lab.run(&[kernel], &Step::new(1, 0));
//! assert_eq!(lab.read(&y).await?, [4.0, 6.0]);
//! # Ok(())
//! # }
//! ```

use wgpu::util::DeviceExt as _;

pub use crate::sample::{Chosen, SampleLab};

use crate::{
    Gpu, GpuError, KernelSpec,
    kernel::{Access, Pipelines, UniformValue},
    readback,
    rows::{RowTable, SpanLayers, TABLE_BYTES},
};

/// A step of one conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    /// Its rows.
    pub rows: u32,
    /// The position of the first.
    pub position: u32,
    /// Rows that see each other.
    pub spans: Vec<std::ops::Range<usize>>,
}

impl Step {
    /// Rows from a position on, none of which sees a later one.
    pub fn new(rows: u32, position: u32) -> Self {
        Self { rows, position, spans: Vec::new() }
    }
}

/// Runs single kernels.
pub struct Lab<'g> {
    gpu: &'g Gpu,
    pipelines: Pipelines,
}

/// A kernel with its buffers, ready to run.
pub struct Prepared {
    pipeline: wgpu::ComputePipeline,
    bind_group: wgpu::BindGroup,
    workgroups: [u32; 3],
}

impl<'g> Lab<'g> {
    /// A place to try kernels of this GPU.
    pub fn new(gpu: &'g Gpu) -> Self {
        Self { gpu, pipelines: gpu.pipelines().clone() }
    }

    /// A buffer of floats.
    pub fn floats(&self, values: &[f32]) -> wgpu::Buffer {
        self.buffer(bytemuck::cast_slice(values))
    }

    /// A buffer of words.
    pub fn words(&self, values: &[u32]) -> wgpu::Buffer {
        self.buffer(bytemuck::cast_slice(values))
    }

    fn buffer(&self, contents: &[u8]) -> wgpu::Buffer {
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let label = Some("lab");
        self.gpu.device.create_buffer_init(&wgpu::util::BufferInitDescriptor { label, contents, usage })
    }

    /// A buffer of zeros.
    pub fn zeros(&self, bytes: u64) -> wgpu::Buffer {
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        self.gpu.buffer("lab", bytes, usage)
    }

    /// Compiles a kernel and binds its uniforms, and its buffers by the names that the kernel uses.
    ///
    /// # Panics
    ///
    /// If a uniform or a buffer is missing.
    pub fn prepare(
        &self,
        spec: &KernelSpec,
        uniforms: &[UniformValue],
        buffers: &[(&str, &wgpu::Buffer)],
        workgroups: [u32; 3],
    ) -> Prepared {
        let pipeline = self.pipelines.get(self.gpu, spec);
        let written: Vec<wgpu::Buffer> = uniforms.iter().map(|uniform| self.uniform(uniform)).collect();
        let bind_group = pipeline.bind_group(self.gpu, None, |binding| {
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

    fn uniform(&self, value: &UniformValue) -> wgpu::Buffer {
        self.gpu.device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
            label: Some(value.layout().variable),
            contents: value.bytes(),
            usage: wgpu::BufferUsages::UNIFORM,
        })
    }

    /// Runs kernels one after another in one step.
    pub fn run(&self, kernels: &[Prepared], step: &Step) {
        let mut table = RowTable::prompt(0, step.position, step.rows);
        for span in &step.spans {
            table.join(span.clone(), SpanLayers { global: true, sliding: true });
        }
        let mut contents = table.bytes();
        contents.resize(TABLE_BYTES as usize, 0);
        let usage = wgpu::BufferUsages::UNIFORM;
        let descriptor = wgpu::util::BufferInitDescriptor { label: Some("step"), contents: &contents, usage };
        let step = self.gpu.device.create_buffer_init(&descriptor);
        let step = self.pipelines.step_group(self.gpu, &step);
        let mut encoder = self.gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
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
        self.gpu.queue.submit([encoder.finish()]);
    }

    /// Seconds that one round of these kernels takes, when many rounds run in one submission.
    #[cfg(not(target_family = "wasm"))]
    pub fn time(&self, kernels: &[Prepared], step: &Step, rounds: u32) -> Result<f64, GpuError> {
        let all = |rounds: u32| -> Result<f64, GpuError> {
            let started = std::time::Instant::now();
            for _ in 0..rounds {
                self.run(kernels, step);
            }
            let lost = |error: wgpu::PollError| GpuError::Lost { reason: error.to_string() };
            self.gpu.device.poll(wgpu::PollType::wait_indefinitely()).map_err(lost)?;
            Ok(started.elapsed().as_secs_f64())
        };
        all(2)?;
        Ok(all(rounds)? / f64::from(rounds))
    }

    /// The floats in a buffer.
    pub async fn read(&self, buffer: &wgpu::Buffer) -> Result<Vec<f32>, GpuError> {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let read = self.gpu.buffer("read", buffer.size(), usage);
        let mut encoder = self.gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(buffer, 0, &read, 0, buffer.size());
        let submission = self.gpu.queue.submit([encoder.finish()]);
        readback::floats(self.gpu, &read, buffer.size(), submission).await
    }
}
