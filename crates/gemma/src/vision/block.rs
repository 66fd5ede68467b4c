//! One block of the tower: attention of all patches to each other, then feed-forward.

use rullama_graph::{Activation, AttendShape, Mask, Tensor, Weight};

use super::{Gelu, VisionConfig, VisionTower, config::AXES};
use crate::{GemmaError, clip::ClippedLinear, loader::LayerLoader, names};

/// The weights of one block.
pub(super) struct Block {
    attention_norm: Weight,
    q: ClippedLinear,
    k: ClippedLinear,
    v: ClippedLinear,
    q_norm: Weight,
    k_norm: Weight,
    output: ClippedLinear,
    post_attention_norm: Weight,
    ffn_norm: Weight,
    gate: ClippedLinear,
    up: ClippedLinear,
    down: ClippedLinear,
    post_ffn_norm: Weight,
    scale: Option<Weight>,
    shape: AttendShape,
    gelu: Gelu,
    eps: f32,
}

impl Block {
    pub(super) fn load(
        config: &VisionConfig,
        tower: &VisionTower,
        tensors: &LayerLoader<'_>,
    ) -> Result<Self, GemmaError> {
        let (width, hidden, heads) = (config.width, tower.feed_forward_width, tower.heads);
        let head_width = tower.head_width(width);
        let linear = |name, from, to| ClippedLinear::load(tensors, &tower.clips, name, from, to);
        Ok(Self {
            attention_norm: tensors.vector(names::VISION_ATTENTION_NORM, width)?,
            q: linear(names::TOWER_Q, width, width)?,
            k: linear(names::TOWER_K, width, width)?,
            v: linear(names::TOWER_V, width, width)?,
            q_norm: tensors.vector(names::Q_NORM, head_width)?,
            k_norm: tensors.vector(names::K_NORM, head_width)?,
            output: linear(names::TOWER_OUTPUT, width, width)?,
            post_attention_norm: tensors.vector(names::VISION_POST_ATTENTION_NORM, width)?,
            ffn_norm: tensors.vector(names::VISION_FEED_FORWARD_NORM, width)?,
            gate: linear(names::TOWER_GATE, width, hidden)?,
            up: linear(names::TOWER_UP, width, hidden)?,
            down: linear(names::TOWER_DOWN, hidden, width)?,
            post_ffn_norm: tensors.vector(names::VISION_POST_FEED_FORWARD_NORM, width)?,
            scale: tensors.optional_vector(names::VISION_SCALE, 1)?,
            shape: AttendShape { heads, kv_heads: heads, head_width, mask: Mask::ALL },
            gelu: tower.gelu,
            eps: config.eps,
        })
    }

    pub(super) fn forward<'g>(&self, x: Tensor<'g>, turns: Tensor<'g>) -> Tensor<'g> {
        let a = self.attention(x.rms_norm(self.attention_norm, self.eps), turns);
        let x = (x + a.rms_norm(self.post_attention_norm, self.eps)).named("after_attention");
        let f = self.feed_forward(x.rms_norm(self.ffn_norm, self.eps));
        let x = x + f.rms_norm(self.post_ffn_norm, self.eps);
        self.scale.map_or(x, |scale| x.scale_by(scale)).named("out")
    }

    fn attention<'g>(&self, x: Tensor<'g>, turns: Tensor<'g>) -> Tensor<'g> {
        let head_width = self.shape.head_width;
        let [q, k, v] = ClippedLinear::forward_all([&self.q, &self.k, &self.v], x);
        let q = q.rms_norm(self.q_norm, self.eps).rotate(turns, head_width / AXES);
        let k = k.rms_norm(self.k_norm, self.eps).rotate(turns, head_width / AXES);
        let v = v.rms_norm_unweighted(head_width, self.eps);
        self.output.forward(q.attend_rows(k, v, self.shape))
    }

    fn feed_forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let [gate, up] = ClippedLinear::forward_all([&self.gate, &self.up], x);
        self.down.forward(match self.gelu {
            Gelu::Tanh => gate.gelu_mul(up),
            Gelu::Quick => gate.activate(Activation::QuickGelu) * up,
        })
    }
}
