//! Choosing alone, without a model: for tests and for measuring.

use super::{Chooser, Sampling};
use crate::{Gpu, GpuError, kernel::Pipelines, readback, rows::TABLE_BYTES};

/// A token that was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
    /// The token.
    pub token: u32,
    /// 0 if it was chosen; 1 if a logit was not a number; 2 if no token was left to choose from.
    pub status: u32,
    /// What the next step would read.
    pub input: u32,
}

/// Chooses tokens from logits that are given.
pub struct SampleLab<'g> {
    gpu: &'g Gpu,
    pipelines: Pipelines,
    step_group: wgpu::BindGroup,
    given: wgpu::Buffer,
    logits: wgpu::Buffer,
    tokens: wgpu::Buffer,
    choice: Chooser,
}

impl<'g> SampleLab<'g> {
    /// For a vocabulary of this size.
    pub fn new(gpu: &'g Gpu, vocabulary: u32) -> Result<Self, GpuError> {
        let pipelines = gpu.pipelines().clone();
        let step = gpu.buffer("step", TABLE_BYTES, wgpu::BufferUsages::UNIFORM);
        let step_group = pipelines.step_group(gpu, &step);
        let bytes = 4 * u64::from(vocabulary);
        let (given, logits) = (gpu.storage("given logits", bytes)?, gpu.storage("logits", bytes)?);
        let tokens = gpu.storage("tokens", 4)?;
        let choice = Chooser::new(gpu, 0, &logits, vocabulary, &tokens)?;
        Ok(Self { gpu, pipelines, step_group, given, logits, tokens, choice })
    }

    /// Begins a reply.
    pub fn begin(&mut self, sampling: &Sampling, history: &[u32]) -> Result<(), GpuError> {
        self.choice.begin(self.gpu, &self.pipelines, sampling, history)
    }

    /// Dispatches that choose one token of the reply.
    pub fn dispatches(&self) -> usize {
        self.choice.dispatches.len()
    }

    /// Chooses `count` tokens, each from these logits.
    pub async fn choose(&self, logits: &[f32], count: usize) -> Result<Vec<Chosen>, GpuError> {
        const WORDS: u64 = 3;
        let bytes = size_of_val(logits) as u64;
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let read = self.gpu.buffer("read", 4 * WORDS * count as u64, usage);
        self.gpu.queue.write_buffer(&self.given, 0, bytemuck::cast_slice(logits));
        let mut encoder = self.gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        for at in (0..count as u64).map(|index| 4 * WORDS * index) {
            encoder.copy_buffer_to_buffer(&self.given, 0, &self.logits, 0, bytes);
            self.record(&mut encoder, 1);
            encoder.copy_buffer_to_buffer(self.choice.chosen(), 0, &read, at, 8);
            encoder.copy_buffer_to_buffer(&self.tokens, 0, &read, at + 8, 4);
        }
        let submission = self.gpu.queue.submit([encoder.finish()]);
        let words = readback::floats(self.gpu, &read, read.size(), submission).await?;
        let words: Vec<u32> = words.into_iter().map(f32::to_bits).collect();
        let chosen = words.as_chunks().0.iter();
        Ok(chosen.map(|&[token, status, input]| Chosen { token, status, input }).collect())
    }

    fn record(&self, encoder: &mut wgpu::CommandEncoder, tokens: u32) {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_bind_group(0, &self.step_group, &[]);
        for _ in 0..tokens {
            self.choice.record(&mut pass);
        }
    }

    /// Seconds that one token takes, when many are chosen in one submission from what the logits have become.
    #[cfg(not(target_family = "wasm"))]
    pub fn time(&self, logits: &[f32], tokens: u32) -> Result<f64, GpuError> {
        self.gpu.queue.write_buffer(&self.logits, 0, bytemuck::cast_slice(logits));
        let all = |tokens: u32| -> Result<f64, GpuError> {
            let mut encoder =
                self.gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            self.record(&mut encoder, tokens);
            let commands = encoder.finish();
            let started = std::time::Instant::now();
            self.gpu.queue.submit([commands]);
            let lost = |error: wgpu::PollError| GpuError::Lost { reason: error.to_string() };
            self.gpu.device.poll(wgpu::PollType::wait_indefinitely()).map_err(lost)?;
            Ok(started.elapsed().as_secs_f64())
        };
        all(4)?;
        // Two lengths, so that what a submission costs by itself falls out.
        let (short, long) = (all(tokens)?, all(3 * tokens)?);
        Ok((long - short) / f64::from(2 * tokens))
    }
}
