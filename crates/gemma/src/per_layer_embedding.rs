//! Per-layer embeddings: each token brings a small vector for every layer.

use rullama_graph::{SoftRows, Tensor, Weight};

use crate::{
    Config, GemmaError,
    loader::{LayerLoader, Loader},
    names,
};

/// The token that stands for rows made by a tower: padding.
const SOFT_TOKEN: u32 = 0;

/// What all layers' embeddings are made from.
pub(crate) struct PerLayerEmbedding {
    table: Weight,
    projection: Weight,
    norm: Weight,
    width: u32,
    eps: f32,
}

impl PerLayerEmbedding {
    /// The tables, if the model has them.
    pub(crate) fn load(config: &Config, tensors: &Loader<'_>) -> Result<Option<Self>, GemmaError> {
        let Some(width) = config.per_layer_width else { return Ok(None) };
        let all = config.layers.len() as u32 * width;
        Ok(Some(Self {
            table: tensors.matrix(names::PER_LAYER_TABLE, all, config.vocabulary)?,
            projection: tensors.matrix(names::PER_LAYER_PROJECTION, config.width, all)?,
            norm: tensors.vector(names::PER_LAYER_NORM, width)?,
            width,
            eps: config.eps,
        }))
    }

    /// The embeddings of all layers side by side, from the step's tokens and their embeddings `x`.
    pub(crate) fn forward<'g>(&self, x: Tensor<'g>, tensors: &Loader<'g>) -> Tensor<'g> {
        let scale = (self.width as f32).sqrt();
        let tokens =
            tensors.builder.embed(self.table, scale, SoftRows::Token(SOFT_TOKEN)).named("ple_token_scaled");
        let projected = x
            .linear(self.projection)
            .scale(1.0 / (x.width() as f32).sqrt())
            .rms_norm(self.norm, self.eps)
            .named("ple_proj_normed");
        (projected + tokens).scale(std::f32::consts::FRAC_1_SQRT_2)
    }
}

/// How one layer takes its embedding in.
pub(crate) struct PerLayerInput {
    gate: Weight,
    output: Weight,
    post_norm: Weight,
    first: u32,
    width: u32,
    eps: f32,
}

impl PerLayerInput {
    pub(crate) fn load(
        layer: u32,
        config: &Config,
        tensors: &LayerLoader<'_>,
    ) -> Result<Option<Self>, GemmaError> {
        let Some(width) = config.per_layer_width else { return Ok(None) };
        Ok(Some(Self {
            gate: tensors.matrix(names::PER_LAYER_GATE, config.width, width)?,
            output: tensors.matrix(names::PER_LAYER_OUTPUT, width, config.width)?,
            post_norm: tensors.vector(names::PER_LAYER_POST_NORM, config.width)?,
            first: layer * width,
            width,
            eps: config.eps,
        }))
    }

    /// What this layer's part of `embeddings` adds to `x`.
    pub(crate) fn forward<'g>(&self, x: Tensor<'g>, embeddings: Tensor<'g>) -> Tensor<'g> {
        let own = embeddings.columns(self.first, self.width);
        x.linear(self.gate).gelu_mul(own).linear(self.output).rms_norm(self.post_norm, self.eps)
    }
}
