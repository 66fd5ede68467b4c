//! Chooses tokens from logits that the host provides, with the kernels that choose a model's tokens.

use super::read;
use crate::{Gpu, GpuError, Sampling, rows::TABLE_BYTES, sample::Chooser};

/// A token that was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
    /// The token.
    pub token: u32,
    /// 0 if it was chosen; 1 if a logit was not a number; 2 if no token was left to choose from.
    pub status: u32,
    /// The token that the next step would read.
    pub input: u32,
}

/// Chooses tokens from given logits.
pub struct LogitChooser<'g> {
    gpu: &'g Gpu,
    step_group: wgpu::BindGroup,
    /// The host's logits. Kernels change their own copy.
    given: wgpu::Buffer,
    logits: wgpu::Buffer,
    tokens: wgpu::Buffer,
    chooser: Chooser,
}

impl<'g> LogitChooser<'g> {
    /// For a vocabulary of this size.
    pub fn new(gpu: &'g Gpu, vocabulary: u32) -> Result<Self, GpuError> {
        let step = gpu.buffer("step", TABLE_BYTES, wgpu::BufferUsages::UNIFORM);
        let step_group = gpu.pipelines().step_group(gpu, &step);
        let bytes = 4 * u64::from(vocabulary);
        let (given, logits) = (gpu.storage("given logits", bytes)?, gpu.storage("logits", bytes)?);
        let tokens = gpu.storage("tokens", 4)?;
        let chooser = Chooser::new(gpu, 0, &logits, vocabulary, &tokens)?;
        Ok(Self { gpu, step_group, given, logits, tokens, chooser })
    }

    /// Begins a reply.
    pub fn begin(&mut self, sampling: &Sampling, history: &[u32]) -> Result<(), GpuError> {
        self.chooser.begin(self.gpu, self.gpu.pipelines(), sampling, history)
    }

    /// Chooses `count` tokens, each from these logits.
    pub async fn choose(&self, logits: &[f32], count: usize) -> Result<Vec<Chosen>, GpuError> {
        const BYTES: u64 = size_of::<[u32; 3]>() as u64;
        let chosen = self.gpu.storage("chosen tokens", BYTES * count as u64)?;
        self.gpu.queue.write_buffer(&self.given, 0, bytemuck::cast_slice(logits));
        let mut encoder = self.gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        for at in (0..count as u64).map(|index| BYTES * index) {
            encoder.copy_buffer_to_buffer(&self.given, 0, &self.logits, 0, size_of_val(logits) as u64);
            self.record(&mut encoder, 1);
            encoder.copy_buffer_to_buffer(self.chooser.chosen(), 0, &chosen, at, 8);
            encoder.copy_buffer_to_buffer(&self.tokens, 0, &chosen, at + 8, 4);
        }
        self.gpu.queue.submit([encoder.finish()]);
        let words: Vec<u32> = read(self.gpu, &chosen).await?.into_iter().map(f32::to_bits).collect();
        // The buffer may be a little longer than asked for.
        let chosen = words.as_chunks().0.iter().take(count);
        Ok(chosen.map(|&[token, status, input]| Chosen { token, status, input }).collect())
    }

    /// Records the choice of so many tokens, each from the logits as the choice before left them.
    pub fn record(&self, encoder: &mut wgpu::CommandEncoder, tokens: u32) {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_bind_group(0, &self.step_group, &[]);
        for _ in 0..tokens {
            (0..self.chooser.dispatches()).for_each(|index| self.chooser.record(&mut pass, index));
        }
    }

    /// The logits that [`record`](Self::record) chooses from.
    pub fn logits(&self) -> &wgpu::Buffer {
        &self.logits
    }

    /// Dispatches that choose one token of the reply.
    pub fn dispatches(&self) -> usize {
        self.chooser.dispatches()
    }
}
