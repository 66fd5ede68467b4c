//! A mixture of experts beside the dense feed-forward, on the same input.

use rullama_graph::{Tensor, Weight};

use crate::{ExpertConfig, GemmaError, loader::LayerLoader, names};

/// The router and the experts of one layer.
pub(crate) struct Experts {
    router: Weight,
    router_scale: Weight,
    dense_post_norm: Weight,
    norm: Weight,
    post_norm: Weight,
    gate: Weight,
    up: Weight,
    down: Weight,
    scale: Option<Weight>,
    used: u32,
    width: u32,
    eps: f32,
}

impl Experts {
    /// The layer's experts, if the model has any.
    pub(crate) fn load(
        config: Option<ExpertConfig>,
        width: u32,
        eps: f32,
        tensors: &LayerLoader<'_>,
    ) -> Result<Option<Self>, GemmaError> {
        let Some(ExpertConfig { count, used, width: hidden }) = config else { return Ok(None) };
        let [gate, up] = if tensors.has(names::EXPERTS_GATE_UP) {
            tensors.expert_parts(names::EXPERTS_GATE_UP, width, hidden, count)?
        } else {
            [
                tensors.experts(names::EXPERTS_GATE, width, hidden, count)?,
                tensors.experts(names::EXPERTS_UP, width, hidden, count)?,
            ]
        };
        Ok(Some(Self {
            router: tensors.matrix(names::ROUTER, width, count)?,
            router_scale: tensors.vector(names::ROUTER_SCALE, width)?,
            dense_post_norm: tensors.vector(names::DENSE_POST_NORM, width)?,
            norm: tensors.vector(names::EXPERTS_NORM, width)?,
            post_norm: tensors.vector(names::EXPERTS_POST_NORM, width)?,
            gate,
            up,
            down: tensors.experts(names::EXPERTS_DOWN, hidden, width, count)?,
            scale: tensors.optional_vector(names::EXPERTS_SCALE, count)?,
            used,
            width,
            eps,
        }))
    }

    /// The experts' answer to `x`, added to that of the dense feed-forward.
    pub(crate) fn forward<'g>(&self, x: Tensor<'g>, dense: Tensor<'g>) -> Tensor<'g> {
        dense.rms_norm(self.dense_post_norm, self.eps) + self.mixture(x).rms_norm(self.post_norm, self.eps)
    }

    fn mixture<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        // The router sees the residual stream under a norm of its own, not the experts' input.
        let routing = x
            .rms_norm(self.router_scale, self.eps)
            .scale(1.0 / (self.width as f32).sqrt())
            .linear(self.router)
            .route(self.used)
            .named("routing");
        let z = x.rms_norm(self.norm, self.eps);
        let hidden = z.expert_linear(self.gate, routing).gelu_mul(z.expert_linear(self.up, routing));
        hidden.expert_linear(self.down, routing).combine(routing, self.scale).named("experts_out")
    }
}
