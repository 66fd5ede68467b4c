//! The text decoder: embedding, layers, head.

use rullama_gguf::Model;
use rullama_graph::{Builder, Graph, Rope, SoftRows};

use crate::{
    Config, GemmaError, checks, layer::Layer, loader::Loader, names, per_layer_embedding::PerLayerEmbedding,
};

/// Which rows' logits a graph computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outputs {
    /// The last row's: all that generation needs.
    Last,
    /// Every row's.
    All,
}

/// Checks the tensors of a text model and describes its decoder. A tensor of the decoder that it would not read is an
/// error; [`warnings`](crate::warnings) has what else is not as expected.
///
/// With [`Outputs::Last`], whatever only feeds the logits of earlier rows is left out: after the last
/// layer that makes keys and values, and within it, one row is computed instead of all. The logits are
/// the same.
pub fn text(model: &Model, config: &Config, outputs: Outputs) -> Result<Graph, GemmaError> {
    checks::layers_agree(model, config)?;
    let builder = Builder::new();
    let tensors = Loader { model, builder: &builder };
    let table = tensors.matrix(names::EMBEDDING, config.width, config.vocabulary)?;
    let head = match tensors.has(names::OUTPUT) {
        true => tensors.matrix(names::OUTPUT, config.width, config.vocabulary)?,
        false => table,
    };
    let output_norm = tensors.vector(names::OUTPUT_NORM, config.width)?;
    let per_layer = PerLayerEmbedding::load(config, &tensors)?;
    let ropes = ropes(config, &tensors)?;
    let mut layers = Vec::new();
    for (index, rope) in (0..).zip(ropes) {
        layers.push(Layer::load(index, config, rope, &tensors.layer(index))?);
    }

    let mut x = builder.embed(table, (config.width as f32).sqrt(), SoftRows::Given).named("embed_scaled");
    let mut embeddings = per_layer.map(|per_layer| per_layer.forward(x, &tensors));
    let mut stored = Vec::new();
    for (index, layer) in layers.iter().enumerate() {
        let last_only = outputs == Outputs::Last && index >= config.last_owner();
        if last_only {
            embeddings = embeddings.map(|embeddings| embeddings.last_row());
        }
        x = builder
            .scope(format_args!("layer{index}"), || layer.forward(x, embeddings, &mut stored, last_only));
    }
    let x = x.rms_norm(output_norm, config.eps).named("final_norm");
    let logits = x.linear(head);
    let logits = config.soft_cap.map_or(logits, |cap| logits.soft_cap(cap)).named("logits");
    let graph = builder.finish(logits);
    checks::nothing_left(model, config, &graph)?;
    Ok(graph)
}

/// How each layer turns its heads. Sliding layers turn all of their columns; global ones leave most of them
/// alone, which a tensor of divisors says, or else the family's custom of turning a quarter.
fn ropes(config: &Config, tensors: &Loader<'_>) -> Result<Vec<Rope>, GemmaError> {
    let has_factors = tensors.has(names::ROPE_FACTORS);
    config
        .layers
        .iter()
        .map(|layer| {
            let whole = Rope::new(layer.head_width, layer.rope_base);
            Ok(match layer.window {
                Some(_) => whole,
                None if has_factors => {
                    let factors = tensors.vector(names::ROPE_FACTORS, layer.head_width / 2)?;
                    Rope { factors: Some(factors), ..whole }
                }
                None => Rope { pairs: layer.head_width / 8, ..whole },
            })
        })
        .collect()
}
