//! Runs kernels with buffers that the caller fills, reads the results and takes the time.

use std::time::Instant;

use rullama_gpu::{Gpu, GpuError, KernelSpec, UniformValue, standalone};
use wgpu::util::DeviceExt as _;

use crate::{Prepared, Step, wait};

/// Kernels read and write every buffer of the lab, and the host copies to and from it.
const USAGE: wgpu::BufferUsages =
    wgpu::BufferUsages::STORAGE.union(wgpu::BufferUsages::COPY_SRC).union(wgpu::BufferUsages::COPY_DST);

/// Runs single kernels.
pub struct Lab<'g> {
    gpu: &'g Gpu,
}

impl<'g> Lab<'g> {
    /// Runs kernels on this GPU.
    pub fn new(gpu: &'g Gpu) -> Self {
        Self { gpu }
    }

    fn device(&self) -> &wgpu::Device {
        standalone::device(self.gpu).0
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
        let (label, usage) = (Some("lab"), USAGE);
        self.device().create_buffer_init(&wgpu::util::BufferInitDescriptor { label, contents, usage })
    }

    /// A buffer of zeros.
    pub fn zeros(&self, bytes: u64) -> wgpu::Buffer {
        let (label, size, usage) = (Some("lab"), bytes, USAGE);
        self.device().create_buffer(&wgpu::BufferDescriptor { label, size, usage, mapped_at_creation: false })
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
        standalone::prepare(self.gpu, spec, uniforms, buffers, workgroups)
    }

    /// Runs kernels one after another in one step.
    pub fn run(&self, kernels: &[Prepared], step: &Step) {
        standalone::run(self.gpu, kernels, step);
    }

    /// The floats in a buffer.
    pub async fn read(&self, buffer: &wgpu::Buffer) -> Result<Vec<f32>, GpuError> {
        standalone::read(self.gpu, buffer).await
    }

    /// Seconds that these kernels take together: the mean of several rounds, each of which is one submission.
    pub fn time(&self, kernels: &[Prepared], step: &Step, rounds: u32) -> Result<f64, GpuError> {
        let all = |rounds: u32| -> Result<f64, GpuError> {
            let started = Instant::now();
            for _ in 0..rounds {
                self.run(kernels, step);
            }
            wait(self.gpu)?;
            Ok(started.elapsed().as_secs_f64())
        };
        // The first rounds are slower: clocks rise and caches fill.
        all(2)?;
        Ok(all(rounds)? / f64::from(rounds))
    }
}
