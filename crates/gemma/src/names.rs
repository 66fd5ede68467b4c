//! What tensors are called. The only file that knows.
//!
//! The first name of each list is the one that llama.cpp's converter writes; the others occur in
//! files of Ollama's converter and in older ones.

/// The embedding table, which is also the output head.
pub(crate) const EMBEDDING: &str = "token_embd.weight";
/// The output head, where it is not the embedding table.
pub(crate) const OUTPUT: &str = "output.weight";
/// The norm before the head.
pub(crate) const OUTPUT_NORM: &str = "output_norm.weight";
/// Divisors of the rotary frequencies of global layers.
pub(crate) const ROPE_FACTORS: &str = "rope_freqs.weight";
/// The table of per-layer embeddings.
pub(crate) const PER_LAYER_TABLE: &str = "per_layer_token_embd.weight";
/// The projection of the embedding to all layers.
pub(crate) const PER_LAYER_PROJECTION: &str = "per_layer_model_proj.weight";
/// Its norm.
pub(crate) const PER_LAYER_NORM: &str = "per_layer_proj_norm.weight";

/// The tensors of the decoder that no layer has.
pub(crate) const OUTSIDE_LAYERS: [&str; 7] =
    [EMBEDDING, OUTPUT, OUTPUT_NORM, ROPE_FACTORS, PER_LAYER_TABLE, PER_LAYER_PROJECTION, PER_LAYER_NORM];
/// How the names of a layer's tensors begin.
pub(crate) const LAYERS: &str = "blk.";
/// How the names of the scales of activations end, beside weights of some formats.
pub(crate) const INPUT_SCALE: &str = ".input_scale";

/// Names of one of a layer's tensors, without the layer's prefix.
pub(crate) type LayerName = &'static [&'static str];

pub(crate) const ATTENTION_NORM: LayerName = &["attn_norm.weight"];
pub(crate) const Q: LayerName = &["attn_q.weight"];
pub(crate) const K: LayerName = &["attn_k.weight"];
pub(crate) const V: LayerName = &["attn_v.weight"];
pub(crate) const ATTENTION_OUTPUT: LayerName = &["attn_output.weight"];
pub(crate) const Q_NORM: LayerName = &["attn_q_norm.weight"];
pub(crate) const K_NORM: LayerName = &["attn_k_norm.weight"];
pub(crate) const POST_ATTENTION_NORM: LayerName = &["post_attention_norm.weight", "attn_post_norm.weight"];

pub(crate) const FEED_FORWARD_NORM: LayerName = &["ffn_norm.weight"];
pub(crate) const GATE: LayerName = &["ffn_gate.weight"];
pub(crate) const UP: LayerName = &["ffn_up.weight"];
pub(crate) const DOWN: LayerName = &["ffn_down.weight"];
pub(crate) const POST_FEED_FORWARD_NORM: LayerName = &["post_ffw_norm.weight", "ffn_post_norm.weight"];

pub(crate) const ROUTER: LayerName = &["ffn_gate_inp.weight"];
pub(crate) const ROUTER_SCALE: LayerName = &["ffn_gate_inp.scale"];
pub(crate) const DENSE_POST_NORM: LayerName = &["post_ffw_norm_1.weight", "ffn_post_norm_1.weight"];
pub(crate) const EXPERTS_NORM: LayerName = &["pre_ffw_norm_2.weight", "ffn_pre_norm_2.weight"];
pub(crate) const EXPERTS_POST_NORM: LayerName = &["post_ffw_norm_2.weight", "ffn_post_norm_2.weight"];
pub(crate) const EXPERTS_GATE_UP: LayerName = &["ffn_gate_up_exps.weight"];
pub(crate) const EXPERTS_GATE: LayerName = &["ffn_gate_exps.weight"];
pub(crate) const EXPERTS_UP: LayerName = &["ffn_up_exps.weight"];
pub(crate) const EXPERTS_DOWN: LayerName = &["ffn_down_exps.weight"];
pub(crate) const EXPERTS_SCALE: LayerName = &["ffn_down_exps.scale", "ffn_gate_inp.per_expert_scale"];

pub(crate) const PER_LAYER_GATE: LayerName = &["inp_gate.weight"];
pub(crate) const PER_LAYER_OUTPUT: LayerName = &["proj.weight"];
pub(crate) const PER_LAYER_POST_NORM: LayerName = &["post_norm.weight"];
pub(crate) const LAYER_SCALE: LayerName = &["layer_output_scale.weight", "layer_scalar"];

/// The tensor that holds the factor of another, for formats that keep one apart. Tensors of the model itself
/// may have such names too, but then they hold more than one value.
pub(crate) fn scale_of(name: &str) -> Option<String> {
    Some(format!("{}.scale", name.strip_suffix(".weight")?))
}

/// A layer's tensor by its full name.
pub(crate) fn of_layer(layer: u32, name: &str) -> String {
    format!("{LAYERS}{layer}.{name}")
}

/// How the names of what makes soft tokens of images begin: a tower, or a projection where there is none.
pub(crate) const VISION: [&str; 2] = ["v.", "mm.input_projection"];
/// The same of sound.
pub(crate) const AUDIO: [&str; 2] = ["a.", "mm.a."];
/// How the names of all tensors of towers begin.
pub(crate) const TOWERS: [&str; 3] = ["v.", "a.", "mm."];
