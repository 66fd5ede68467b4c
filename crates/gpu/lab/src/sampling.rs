//! Chooses tokens from logits that the caller provides, and takes the time.

use std::time::Instant;

use rullama_gpu::{
    Gpu, GpuError, Sampling,
    standalone::{self, LogitChooser},
};

use crate::{Chosen, wait};

/// Chooses tokens from given logits.
pub struct SampleLab<'g> {
    gpu: &'g Gpu,
    chooser: LogitChooser<'g>,
}

impl<'g> SampleLab<'g> {
    /// For a vocabulary of this size.
    pub fn new(gpu: &'g Gpu, vocabulary: u32) -> Result<Self, GpuError> {
        Ok(Self { gpu, chooser: LogitChooser::new(gpu, vocabulary)? })
    }

    /// Begins a reply.
    pub fn begin(&mut self, sampling: &Sampling, history: &[u32]) -> Result<(), GpuError> {
        self.chooser.begin(sampling, history)
    }

    /// Dispatches that choose one token of the reply.
    pub fn dispatches(&self) -> usize {
        self.chooser.dispatches()
    }

    /// Chooses `count` tokens, each from these logits.
    pub async fn choose(&self, logits: &[f32], count: usize) -> Result<Vec<Chosen>, GpuError> {
        self.chooser.choose(logits, count).await
    }

    /// Seconds that one token takes, when many are chosen in one submission. The first is chosen from these logits, each
    /// later one from what the bias and penalties before it have made of them.
    pub fn time(&self, logits: &[f32], tokens: u32) -> Result<f64, GpuError> {
        let (device, queue) = standalone::device(self.gpu);
        queue.write_buffer(self.chooser.logits(), 0, bytemuck::cast_slice(logits));
        let all = |tokens: u32| -> Result<f64, GpuError> {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            self.chooser.record(&mut encoder, tokens);
            let commands = encoder.finish();
            let started = Instant::now();
            queue.submit([commands]);
            wait(self.gpu)?;
            Ok(started.elapsed().as_secs_f64())
        };
        all(4)?;
        // The difference of two lengths has no cost of submitting in it.
        let (short, long) = (all(tokens)?, all(3 * tokens)?);
        Ok((long - short) / f64::from(2 * tokens))
    }
}
