//! One block of the conformer: half a feed-forward, attention to the last rows, a convolution, and another half.

use rullama_graph::{Activation, AttendShape, Mask, Tensor, Weight};

use super::{AudioConfig, AudioTower};
use crate::{
    GemmaError,
    clip::{ClippedLinear, Clips},
    loader::LayerLoader,
    names,
};

/// The weights of one block.
pub(super) struct Block {
    before: FeedForward,
    attention_norm: Weight,
    attention: Attention,
    post_attention_norm: Weight,
    convolution: LightConvolution,
    after: FeedForward,
    norm: Weight,
    eps: f32,
}

impl Block {
    pub(super) fn load(
        config: &AudioConfig,
        tower: &AudioTower,
        tensors: &LayerLoader<'_>,
    ) -> Result<Self, GemmaError> {
        let (width, eps) = (config.width, config.eps);
        let [before, after] = names::AUDIO_FEED_FORWARDS;
        let names = tower.names;
        Ok(Self {
            before: FeedForward::load(before, config, tower, tensors)?,
            attention_norm: tensors.vector(names.attention_norm, width)?,
            attention: Attention::load(config, tower, tensors)?,
            post_attention_norm: tensors.vector(names.post_attention_norm, width)?,
            convolution: LightConvolution::load(config, tower, tensors)?,
            after: FeedForward::load(after, config, tower, tensors)?,
            norm: tensors.vector(names.block_norm, width)?,
            eps,
        })
    }

    pub(super) fn forward<'g>(&self, x: Tensor<'g>, distances: Tensor<'g>) -> Tensor<'g> {
        let x = x + self.before.forward(x).scale(0.5);
        let a = self.attention.forward(x.rms_norm(self.attention_norm, self.eps), distances);
        let x = (x + a.rms_norm(self.post_attention_norm, self.eps)).named("after_attention");
        let x = x + self.convolution.forward(x);
        let x = x + self.after.forward(x).scale(0.5);
        x.rms_norm(self.norm, self.eps).named("out")
    }
}

/// A feed-forward without a gate, with a norm before and after it.
struct FeedForward {
    norm: Weight,
    up: ClippedLinear,
    down: ClippedLinear,
    post_norm: Weight,
    eps: f32,
}

impl FeedForward {
    fn load(
        [norm, up, down, post_norm]: [&'static str; 4],
        config: &AudioConfig,
        tower: &AudioTower,
        tensors: &LayerLoader<'_>,
    ) -> Result<Self, GemmaError> {
        let (width, hidden) = (config.width, tower.feed_forward_width);
        let vector = |name: &str| tensors.loader.vector(&tensors.full_name(name), width);
        Ok(Self {
            norm: vector(norm)?,
            up: ClippedLinear::load(tensors, &tower.clips, up, width, hidden)?,
            down: ClippedLinear::load(tensors, &tower.clips, down, hidden, width)?,
            post_norm: vector(post_norm)?,
            eps: config.eps,
        })
    }

    fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let hidden = self.up.forward(x.rms_norm(self.norm, self.eps)).activate(Activation::Silu);
        self.down.forward(hidden).rms_norm(self.post_norm, self.eps)
    }
}

/// Attention to the last rows, whose scores depend on the distance and are capped.
struct Attention {
    q: ClippedLinear,
    k: ClippedLinear,
    v: ClippedLinear,
    q_scale: Weight,
    distances: Weight,
    output: ClippedLinear,
    shape: AttendShape,
}

impl Attention {
    fn load(config: &AudioConfig, tower: &AudioTower, tensors: &LayerLoader<'_>) -> Result<Self, GemmaError> {
        let (width, heads) = (config.width, tower.heads);
        let head_width = width / heads;
        let linear = |name| ClippedLinear::load(tensors, &tower.clips, name, width, width);
        let mask = Mask::sliding(AudioConfig::WINDOW);
        Ok(Self {
            q: linear(names::TOWER_Q)?,
            k: linear(names::TOWER_K)?,
            v: linear(names::TOWER_V)?,
            q_scale: tensors.vector(names::QUERY_SCALE, head_width)?,
            distances: tensors.matrix(tower.names.distances, width, width)?,
            output: linear(names::TOWER_OUTPUT)?,
            shape: AttendShape { heads, kv_heads: heads, head_width, mask },
        })
    }

    fn forward<'g>(&self, x: Tensor<'g>, distances: Tensor<'g>) -> Tensor<'g> {
        let [q, k, v] = ClippedLinear::forward_all([&self.q, &self.k, &self.v], x);
        // Constants of the family: softplus of zero, and of one, make queries and keys of scale one.
        let q_scale = f64::from(self.shape.head_width).sqrt().recip() / std::f64::consts::LN_2;
        let k_scale = (1.0 + std::f64::consts::E).ln() / std::f64::consts::LN_2;
        let q = q.scale(q_scale as f32).scale_by(self.q_scale);
        let k = k.scale(k_scale as f32);
        let distances = distances.linear(self.distances);
        self.output.forward(q.attend_relative(k, v, distances, self.shape, AudioConfig::SCORE_CAP))
    }
}

/// A convolution of each column over the last rows, between two linear layers, the first of them gated.
struct LightConvolution {
    norm: Weight,
    start: ClippedLinear,
    kernel: Weight,
    inner_norm: Weight,
    end: ClippedLinear,
    eps: f32,
}

impl LightConvolution {
    fn load(config: &AudioConfig, tower: &AudioTower, tensors: &LayerLoader<'_>) -> Result<Self, GemmaError> {
        let (width, clips): (u32, &Clips) = (config.width, &tower.clips);
        Ok(Self {
            norm: tensors.vector(names::BEFORE_CONVOLUTION, width)?,
            start: ClippedLinear::load(tensors, clips, names::CONVOLUTION_START, width, 2 * width)?,
            kernel: tensors.flat(names::CONVOLUTION_KERNEL, &[tower.kernel, width])?,
            inner_norm: tensors.vector(names::AFTER_CONVOLUTION, width)?,
            end: ClippedLinear::load(tensors, clips, names::CONVOLUTION_END, width, width)?,
            eps: config.eps,
        })
    }

    fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let both = self.start.forward(x.rms_norm(self.norm, self.eps));
        let width = x.width();
        let x = both.columns(0, width) * both.columns(width, width).activate(Activation::Sigmoid);
        let x = x.convolve_columns(self.kernel).rms_norm(self.inner_norm, self.eps);
        self.end.forward(x.activate(Activation::Silu))
    }
}
