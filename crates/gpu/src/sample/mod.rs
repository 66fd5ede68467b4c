//! Choosing tokens on the GPU, so that a step can read the token of the step before it without waiting for the host.
//!
//! | file | idea |
//! |---|---|
//! | `kernels` | which kernels choose a token, by the options of a reply |
//! | `options` | the options, and how kernels see them |
//!
//! The distribution is that of the engine's sampler on the CPU, and so are the random numbers and the order in which
//! tokens are walked along. Weights are added as whole numbers, which is exact in any order; what remains different is
//! the last digit of an exponential, so once in very many tokens a draw next to a boundary falls on its other side.

mod kernels;
mod options;

use crate::{
    Gpu, GpuError, KernelSpec,
    kernel::{Binding, Pipelines, params::SampleParams},
};
use kernels::{SamplingPath, Sizes};
use options::State;

pub use options::Sampling;

/// Chooses the tokens of one conversation, reply after reply.
#[derive(Debug)]
pub(crate) struct Chooser {
    sizes: Sizes,
    slot: u32,
    buffers: Buffers,
    dispatches: Vec<SamplingDispatch>,
}

#[derive(Debug)]
struct SamplingDispatch {
    pipeline: wgpu::ComputePipeline,
    bind_group: wgpu::BindGroup,
    workgroups: u32,
}

/// Everything that the kernels name. What some options need is small until a reply has them.
#[derive(Debug)]
struct Buffers {
    logits: wgpu::Buffer,
    tokens: wgpu::Buffer,
    params: wgpu::Buffer,
    state: wgpu::Buffer,
    bias: wgpu::Buffer,
    recent: wgpu::Buffer,
    seen: wgpu::Buffer,
    maxima: wgpu::Buffer,
    block_weights: wgpu::Buffer,
    /// Ranks: those gathered for `top_k`, or all of them in sorted blocks.
    order: wgpu::Buffer,
    weights: wgpu::Buffer,
}

impl Chooser {
    /// The chooser of a slot. `logits` holds rows of the vocabulary's logits as f32; bias and penalties change them in place.
    /// `tokens` is where the next step reads its token, at the index of the slot.
    pub(crate) fn new(
        gpu: &Gpu,
        slot: u32,
        logits: &wgpu::Buffer,
        vocabulary: u32,
        tokens: &wgpu::Buffer,
    ) -> Result<Self, GpuError> {
        let sizes = Sizes::new(vocabulary);
        let uniform = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST;
        let buffers = Buffers {
            logits: logits.clone(),
            tokens: tokens.clone(),
            params: gpu.buffer("sampling", (size_of::<SampleParams>() as u64).next_multiple_of(16), uniform),
            state: gpu.storage("sampling state", size_of::<State>() as u64)?,
            bias: gpu.storage("bias", 0)?,
            recent: gpu.storage("recent tokens", 0)?,
            seen: gpu.storage("seen tokens", 0)?,
            maxima: gpu.storage("maxima", 8 * u64::from(sizes.maxima()))?,
            block_weights: gpu.storage("block weights", 8 * u64::from(sizes.blocks() + 1))?,
            order: gpu.storage("ranks", 0)?,
            weights: gpu.storage("weights", 0)?,
        };
        Ok(Self { sizes, slot, buffers, dispatches: Vec::new() })
    }

    /// Prepares for a reply, of which the model has read `history`: with the last tokens of it penalties begin.
    pub(crate) fn begin(
        &mut self,
        gpu: &Gpu,
        pipelines: &Pipelines,
        sampling: &Sampling,
        history: &[u32],
    ) -> Result<(), GpuError> {
        let vocabulary = self.sizes.vocabulary;
        let bias = sampling.merged_bias(vocabulary);
        let window = sampling.window();
        let recent = &history[history.len().saturating_sub(window)..];
        let params = SampleParams::new(sampling, vocabulary, bias.len(), self.slot);
        let path = SamplingPath::of(&params);

        // Buffers of later steps may be larger; those of this reply's tokens are written by the kernels alone.
        let buffers = &mut self.buffers;
        let ranks = u64::from(self.sizes.blocks() * kernels::BLOCK);
        grow(gpu, &mut buffers.bias, "bias", 8 * bias.len() as u64)?;
        grow(gpu, &mut buffers.recent, "recent tokens", 4 * window as u64)?;
        if window > 0 {
            grow(gpu, &mut buffers.seen, "seen tokens", 8 * u64::from(vocabulary))?;
        }
        if matches!(path, SamplingPath::TopK | SamplingPath::ByRank) {
            grow(gpu, &mut buffers.order, "ranks", 8 * ranks)?;
        }
        if path == SamplingPath::ByRank {
            grow(gpu, &mut buffers.weights, "weights", 16 * ranks)?;
        }

        let state = State::new(sampling.random, recent.len(), window);
        gpu.queue.write_buffer(&buffers.params, 0, bytemuck::bytes_of(&params));
        gpu.queue.write_buffer(&buffers.state, 0, bytemuck::bytes_of(&state));
        gpu.queue.write_buffer(&buffers.bias, 0, bytemuck::cast_slice(&bias));
        gpu.queue.write_buffer(&buffers.recent, 0, bytemuck::cast_slice(recent));
        if window > 0 {
            let seen = options::seen(recent, vocabulary);
            gpu.queue.write_buffer(&buffers.seen, 0, bytemuck::cast_slice(&seen));
        }
        self.dispatches = path
            .kernels(&self.sizes)
            .into_iter()
            .map(|(spec, workgroups)| {
                let pipeline = pipelines.get(gpu, &spec);
                let named = |binding: &Binding| self.buffers.named(binding.name).as_entire_binding();
                let bind_group = pipeline.bind_group(gpu, None, named);
                SamplingDispatch { pipeline: pipeline.pipeline, bind_group, workgroups }
            })
            .collect();
        Ok(())
    }

    /// Chooses a token from the logits of the step just recorded, whose group is bound in `pass`: one of its dispatches, which
    /// come one after another. Those of several choosers do not wait for each other.
    pub(crate) fn record(&self, pass: &mut wgpu::ComputePass<'_>, index: usize) {
        let Some(dispatch) = self.dispatches.get(index) else { return };
        pass.set_pipeline(&dispatch.pipeline);
        pass.set_bind_group(1, &dispatch.bind_group, &[]);
        pass.dispatch_workgroups(dispatch.workgroups, 1, 1);
    }

    /// Dispatches that choose one token of the reply.
    pub(crate) fn dispatches(&self) -> usize {
        self.dispatches.len()
    }

    /// Begins with the last token chosen and a status: 0 if it was; 1 if a logit was not a number; 2 if no token was
    /// left to choose from.
    pub(crate) fn chosen(&self) -> &wgpu::Buffer {
        &self.buffers.state
    }
}

impl Buffers {
    fn named(&self, name: &str) -> &wgpu::Buffer {
        match name {
            "logits" => &self.logits,
            "tokens" => &self.tokens,
            "params" => &self.params,
            "state" => &self.state,
            "bias" => &self.bias,
            "recent" => &self.recent,
            "seen" => &self.seen,
            "maxima" => &self.maxima,
            "block_weights" => &self.block_weights,
            "order" | "gathered" => &self.order,
            "weights" => &self.weights,
            _ => unreachable!("no kernel of sampling names `{name}`"),
        }
    }
}

/// Every kernel that samples from a vocabulary of this size.
pub(crate) fn kernels_for(vocabulary: u32) -> Vec<KernelSpec> {
    let sizes = Sizes::new(vocabulary);
    SamplingPath::ALL.iter().flat_map(|path| path.kernels(&sizes)).map(|(spec, _)| spec).collect()
}

/// The most bytes that choosing may take, with a history as long as the context.
pub(crate) fn most_bytes(vocabulary: u32, context: u32) -> u64 {
    let sizes = Sizes::new(vocabulary);
    let ranks = u64::from(sizes.blocks() * kernels::BLOCK);
    let always = 8 * u64::from(sizes.maxima()) + 8 * u64::from(sizes.blocks() + 1);
    let penalties = 4 * u64::from(context) + 8 * u64::from(vocabulary);
    always + penalties + (8 + 16) * ranks
}

/// Makes a buffer large enough. What was in it is lost.
fn grow(gpu: &Gpu, buffer: &mut wgpu::Buffer, what: &str, bytes: u64) -> Result<(), GpuError> {
    if buffer.size() < bytes {
        *buffer = gpu.storage(what, bytes)?;
    }
    Ok(())
}
