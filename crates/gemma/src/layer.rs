//! One decoder layer.

use rullama_graph::{Rope, Tensor, Weight};

use crate::{
    Config, GemmaError, attention::Attention, experts::Experts, feed_forward::FeedForward,
    loader::LayerLoader, names, per_layer_embedding::PerLayerInput,
};

/// The weights of one layer.
pub(crate) struct Layer {
    attention_norm: Weight,
    attention: Attention,
    post_attention_norm: Weight,
    ffn_norm: Weight,
    ffn: FeedForward,
    experts: Option<Experts>,
    post_ffn_norm: Weight,
    per_layer: Option<PerLayerInput>,
    scale: Option<Weight>,
    eps: f32,
}

impl Layer {
    pub(crate) fn load(
        index: u32,
        config: &Config,
        rope: Rope,
        tensors: &LayerLoader<'_>,
    ) -> Result<Self, GemmaError> {
        let (width, eps) = (config.width, config.eps);
        Ok(Self {
            attention_norm: tensors.vector(names::ATTENTION_NORM, width)?,
            attention: Attention::load(index, config, rope, tensors)?,
            post_attention_norm: tensors.vector(names::POST_ATTENTION_NORM, width)?,
            ffn_norm: tensors.vector(names::FEED_FORWARD_NORM, width)?,
            ffn: FeedForward::load(width, config.layers[index as usize].feed_forward_width, tensors)?,
            experts: Experts::load(config.experts, width, eps, tensors)?,
            post_ffn_norm: tensors.vector(names::POST_FEED_FORWARD_NORM, width)?,
            per_layer: PerLayerInput::load(index, config, tensors)?,
            scale: tensors.optional_vector(names::LAYER_SCALE, 1)?,
            eps,
        })
    }

    /// Attention, then feed-forward, each normed on the way in and on the way out; then what the layer's own
    /// embedding adds. `stored` is what layers attend to, as [`Attention::forward`] has it. With `last_only`, everything but keys and values is computed for the last row alone.
    pub(crate) fn forward<'g>(
        &self,
        x: Tensor<'g>,
        embeddings: Option<Tensor<'g>>,
        stored: &mut Vec<Tensor<'g>>,
        last_only: bool,
    ) -> Tensor<'g> {
        let a = self.attention.forward(x.rms_norm(self.attention_norm, self.eps), stored, last_only);
        let x = if last_only { x.last_row() } else { x };
        let x = (x + a.rms_norm(self.post_attention_norm, self.eps)).named("after_attention");

        let f = self.ffn.forward(x.rms_norm(self.ffn_norm, self.eps));
        let f = self.experts.as_ref().map_or(f, |experts| experts.forward(x, f));
        let x = (x + f.rms_norm(self.post_ffn_norm, self.eps)).named("after_feed_forward");

        let x = match (&self.per_layer, embeddings) {
            (Some(input), Some(embeddings)) => x + input.forward(x, embeddings),
            _ => x,
        };
        self.scale.map_or(x, |scale| x.scale_by(scale)).named("out")
    }
}
