//! One kernel alone: for tests of kernels against the reference, and for measuring them.
//!
//! ```no_run
//! # async fn example() -> Result<(), rullama_gpu::GpuError> {
//! use rullama_gpu::{Fragment, Gpu, GpuOptions, Kernel, KernelSpec, lab::Lab};
//!
//! let gpu = Gpu::open(&GpuOptions::default()).await?;
//! let lab = Lab::new(&gpu);
//! let (a, b, y) = (lab.floats(&[1.0, 2.0]), lab.floats(&[3.0, 4.0]), lab.floats(&[0.0; 2]));
//! let spec = KernelSpec::new(Kernel::Elementwise).with(Fragment::Reduce).with(Fragment::Add).constant("LANES", 64);
//! let kernel = lab.prepare(&spec, &[2, 1, 0], &[("a", &a), ("b", &b), ("y", &y)], [1, 1, 1]);
//! lab.run(&[kernel], [1, 0]);
//! assert_eq!(lab.read(&y).await?, [4.0, 6.0]);
//! # Ok(())
//! # }
//! ```

use wgpu::util::DeviceExt as _;

pub use crate::sample::{Chosen, SampleLab};

use crate::{
    Gpu, GpuError, KernelSpec,
    kernel::{Access, Pipelines},
    readback,
};

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

    /// Compiles a kernel and binds its parameters, as words, and its buffers, by the names it gives them.
    ///
    /// # Panics
    ///
    /// If a buffer is missing.
    pub fn prepare(
        &self,
        spec: &KernelSpec,
        params: &[u32],
        buffers: &[(&str, &wgpu::Buffer)],
        workgroups: [u32; 3],
    ) -> Prepared {
        let pipeline = self.pipelines.get(self.gpu, spec);
        let mut params = params.to_vec();
        params.resize(params.len().next_multiple_of(4), 0);
        let params = self.gpu.device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
            label: Some("parameters"),
            contents: bytemuck::cast_slice(&params),
            usage: wgpu::BufferUsages::UNIFORM,
        });
        let bind_group = pipeline.bind_group(self.gpu, None, |binding| {
            let named = buffers.iter().find(|(name, _)| *name == binding.name);
            let buffer = match binding.access {
                Access::Uniform => &params,
                _ => named.unwrap_or_else(|| panic!("{spec} needs `{}`", binding.name)).1,
            };
            buffer.as_entire_binding()
        });
        Prepared { pipeline: pipeline.pipeline, bind_group, workgroups }
    }

    /// Runs kernels one after another in a step of `rows` rows at `position`.
    pub fn run(&self, kernels: &[Prepared], [rows, position]: [u32; 2]) {
        let step = self.gpu.device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
            label: Some("step"),
            contents: bytemuck::cast_slice(&[rows, position, 0, 0]),
            usage: wgpu::BufferUsages::UNIFORM,
        });
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
    pub fn time(&self, kernels: &[Prepared], step: [u32; 2], rounds: u32) -> Result<f64, GpuError> {
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
