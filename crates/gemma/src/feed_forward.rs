//! The dense feed-forward.

use rullama_graph::{Tensor, Weight};

use crate::{GemmaError, loader::LayerLoader, names};

/// `down · (gelu(gate · x) · (up · x))`.
pub(crate) struct FeedForward {
    gate: Weight,
    up: Weight,
    down: Weight,
}

impl FeedForward {
    pub(crate) fn load(width: u32, hidden: u32, tensors: &LayerLoader<'_>) -> Result<Self, GemmaError> {
        Ok(Self {
            gate: tensors.matrix(names::GATE, width, hidden)?,
            up: tensors.matrix(names::UP, width, hidden)?,
            down: tensors.matrix(names::DOWN, hidden, width)?,
        })
    }

    pub(crate) fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        x.linear(self.gate).gelu_mul(x.linear(self.up)).linear(self.down).named("mlp_out")
    }
}
