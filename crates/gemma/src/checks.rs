//! Whether the tensors and keys of a file are those of the model that it describes.
//!
//! A file that was converted wrongly, renamed or cut short often has everything that a graph cannot be built without, and
//! gives another model than it should. So a tensor of the decoder that no operation reads is an error, and so is one that
//! only some of the layers have that need it. What cannot change the results is a [`Warning`].

use std::{collections::BTreeSet, fmt};

use rullama_gguf::Model;
use rullama_graph::Graph;

use crate::{
    Config, GemmaError, KvSource,
    names::{self, LayerName},
};

/// Something in a file that is not as expected. The model runs all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// A tensor that is neither the decoder's nor a tower's. It is not read.
    UnusedTensor {
        /// The tensor.
        name: String,
    },
    /// A key of the architecture's section that is not known. It is not read.
    UnusedKey {
        /// The key.
        key: String,
    },
    /// A tensor that all published models of the family have.
    AssumedTensor {
        /// The tensor.
        name: String,
        /// What is computed without it.
        assumed: &'static str,
    },
    /// A key that all published models of the family have.
    AssumedKey {
        /// The key.
        key: String,
        /// What is computed without it.
        assumed: &'static str,
    },
}

impl Warning {
    /// A short string for this kind of warning that stays the same between versions.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnusedTensor { .. } => "model.unused_tensor",
            Self::UnusedKey { .. } => "model.unused_key",
            Self::AssumedTensor { .. } => "model.assumed_tensor",
            Self::AssumedKey { .. } => "model.assumed_key",
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnusedTensor { name } => write!(f, "tensor `{name}` is unknown and is not used"),
            Self::UnusedKey { key } => write!(f, "key `{key}` is unknown and is not used"),
            Self::AssumedTensor { name, assumed } => write!(f, "tensor `{name}` is missing; {assumed}"),
            Self::AssumedKey { key, assumed } => write!(f, "key `{key}` is missing; {assumed}"),
        }
    }
}

/// What is not as expected in the file of a model that can run.
pub fn warnings(model: &Model, config: &Config) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let has_global = config.layers.iter().any(|layer| layer.window.is_none());
    if has_global && model.tensor(names::ROPE_FACTORS).is_none() {
        let assumed = "a quarter of each head is rotated in global layers";
        warnings.push(Warning::AssumedTensor { name: names::ROPE_FACTORS.to_owned(), assumed });
    }
    if !has(model, 0, names::LAYER_SCALE) {
        let name = names::of_layer(0, names::LAYER_SCALE[0]);
        warnings.push(Warning::AssumedTensor {
            name,
            assumed: "the outputs of all layers are taken as they are",
        });
    }
    if config.experts.is_some() && !has(model, 0, names::EXPERTS_SCALE) {
        let name = names::of_layer(0, names::EXPERTS_SCALE[0]);
        warnings
            .push(Warning::AssumedTensor { name, assumed: "all experts are weighed by the router alone" });
    }
    let soft_cap = "gemma4.final_logit_softcapping";
    // A cap of zero says that there is none.
    if model.metadata().get(soft_cap).is_none() {
        let assumed = "the logits are taken as they are, without a soft cap";
        warnings.push(Warning::AssumedKey { key: soft_cap.to_owned(), assumed });
    }
    for tensor in model.tensors().filter(|tensor| !is_decoders(tensor.name) && !is_towers(tensor.name)) {
        warnings.push(Warning::UnusedTensor { name: tensor.name.to_owned() });
    }
    for (key, _) in model.header().entries() {
        let own = key.strip_prefix("gemma4.");
        if own.is_some_and(|own| !is_known_key(own)) {
            warnings.push(Warning::UnusedKey { key: key.to_owned() });
        }
    }
    warnings
}

/// Refuses files in which a tensor is missing from some of the layers that should have it.
pub(crate) fn layers_agree(model: &Model, config: &Config) -> Result<(), GemmaError> {
    let all = 0..config.layers.len() as u32;
    let owns = |layer: &u32| config.layers[*layer as usize].kv == KvSource::Own;
    let slides = |layer: &u32| config.layers[*layer as usize].window.is_some();
    let missing = |layer: u32, name: LayerName| {
        Err(GemmaError::MissingTensor { name: names::of_layer(layer, name[0]) })
    };
    // Global layers of the larger members take their keys for values, all of them; sliding layers never do.
    let global: Vec<u32> = all.clone().filter(|layer| owns(layer) && !slides(layer)).collect();
    let values = global.iter().any(|&layer| has(model, layer, names::V));
    let mut need_values = all.clone().filter(|layer| owns(layer) && (values || slides(layer)));
    if let Some(layer) = need_values.find(|&layer| !has(model, layer, names::V)) {
        return missing(layer, names::V);
    }
    let scaled = all.clone().any(|layer| has(model, layer, names::LAYER_SCALE));
    if let Some(layer) = all.clone().find(|&layer| scaled && !has(model, layer, names::LAYER_SCALE)) {
        return missing(layer, names::LAYER_SCALE);
    }
    let experts_scaled = all.clone().any(|layer| has(model, layer, names::EXPERTS_SCALE));
    let lacks_scale = |&layer: &u32| experts_scaled && !has(model, layer, names::EXPERTS_SCALE);
    if let Some(layer) = all.clone().find(lacks_scale) {
        return missing(layer, names::EXPERTS_SCALE);
    }
    let routed = config.experts.is_some();
    if let Some(layer) = all.clone().find(|&layer| routed && !has(model, layer, names::ROUTER)) {
        return missing(layer, names::ROUTER);
    }
    Ok(())
}

/// Refuses files with a tensor of the decoder that its graph does not read.
pub(crate) fn nothing_left(model: &Model, config: &Config, graph: &Graph) -> Result<(), GemmaError> {
    let used: BTreeSet<&str> = graph.weights().iter().map(|weight| weight.tensor.as_str()).collect();
    let left = model.tensors().find(|tensor| {
        is_decoders(tensor.name) && !used.contains(tensor.name) && !may_be_left(tensor.name, config)
    });
    match left {
        Some(tensor) => Err(GemmaError::UnexpectedTensor { name: tensor.name.to_owned() }),
        None => Ok(()),
    }
}

fn has(model: &Model, layer: u32, name: LayerName) -> bool {
    name.iter().any(|name| model.tensor(&names::of_layer(layer, name)).is_some())
}

fn is_decoders(name: &str) -> bool {
    name.starts_with(names::LAYERS) || names::OUTSIDE_LAYERS.contains(&name)
}

fn is_towers(name: &str) -> bool {
    names::TOWERS.iter().any(|beginning| name.starts_with(beginning))
}

/// Whether a tensor of the decoder has nothing to do: keys and values of layers that borrow them, which some converters
/// keep, and scales of activations, which are for integer arithmetic.
fn may_be_left(name: &str, config: &Config) -> bool {
    if name.ends_with(names::INPUT_SCALE) {
        return true;
    }
    let Some((layer, own)) = name.strip_prefix(names::LAYERS).and_then(|rest| rest.split_once('.')) else {
        return false;
    };
    let layer = layer.parse().ok().and_then(|layer: usize| config.layers.get(layer));
    let borrows = layer.is_some_and(|layer| layer.kv != KvSource::Own);
    borrows
        && [names::K, names::V, names::K_NORM].iter().any(|known| {
            known.contains(&own) || known.iter().any(|known| names::scale_of(known).as_deref() == Some(own))
        })
}

/// Whether a key below `gemma4.` is one that is read, or one that converters write and the decoder does not need.
fn is_known_key(key: &str) -> bool {
    const KNOWN: [&str; 27] = [
        "attention.global_head_count_kv",
        "attention.head_count",
        "attention.head_count_kv",
        "attention.key_length",
        "attention.key_length_swa",
        "attention.layer_norm_rms_epsilon",
        "attention.shared_kv_layers",
        "attention.sliding_window",
        "attention.sliding_window_pattern",
        "attention.value_length",
        "attention.value_length_swa",
        "block_count",
        "context_length",
        "embedding_length",
        "embedding_length_per_layer_input",
        "expert_count",
        "expert_feed_forward_length",
        "expert_used_count",
        "feed_forward_length",
        "final_logit_softcapping",
        "rope.dimension_count",
        "rope.dimension_count_swa",
        "rope.freq_base",
        "rope.freq_base_swa",
        "rope.local.freq_base",
        "rope.partial_rotary_factor",
        "vocab_size",
    ];
    KNOWN.contains(&key) || key.starts_with("vision.") || key.starts_with("audio.")
}
