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

/// A block's tensor by its full name, where the names of all blocks' tensors begin with `blocks`.
pub(crate) fn of_block(blocks: &str, block: u32, name: &str) -> String {
    format!("{blocks}{block}.{name}")
}

/// A layer's tensor by its full name.
pub(crate) fn of_layer(layer: u32, name: &str) -> String {
    of_block(LAYERS, layer, name)
}

/// How the names of what makes soft rows of images begin: a tower, or a projection where there is none.
pub(crate) const VISION: [&str; 2] = ["v.", "mm.input_projection"];
/// The same of sound.
pub(crate) const AUDIO: [&str; 2] = ["a.", "mm.a."];
/// How the names of all tensors of towers begin.
pub(crate) const TOWERS: [&str; 3] = ["v.", "a.", "mm."];

/// What projects the tower's rows to the text model. Both converters call it so.
pub(crate) const VISION_PROJECTION: &str = "mm.input_projection.weight";
/// The projection of patches to the tower.
pub(crate) const PATCHES: &str = "v.patch_embd.weight";
/// What is added to it, in the model without a tower.
pub(crate) const PATCHES_BIAS: &str = "v.patch_embd.bias";
/// A table for columns of patches, then one for rows.
pub(crate) const PLACES: &str = "v.position_embd.weight";
/// What pooled rows are standardised with, in the larger members.
pub(crate) const STANDARD_BIAS: &str = "v.std_bias";
pub(crate) const STANDARD_SCALE: &str = "v.std_scale";
/// How the names of a vision tower's blocks begin.
pub(crate) const VISION_BLOCKS: &str = "v.blk.";

/// A norm of the model without a vision tower, and what is added after it; one report has them counted from zero.
pub(crate) fn patch_norm(index: u32) -> [String; 2] {
    ["weight", "bias"].map(|part| format!("v.patch_norm.{index}.{part}"))
}

pub(crate) const VISION_ATTENTION_NORM: LayerName = &["ln1.weight"];
pub(crate) const VISION_FEED_FORWARD_NORM: LayerName = &["ln2.weight"];
pub(crate) const VISION_POST_ATTENTION_NORM: LayerName = &["attn_post_norm.weight"];
pub(crate) const VISION_POST_FEED_FORWARD_NORM: LayerName = &["ffn_post_norm.weight"];
pub(crate) const VISION_SCALE: LayerName = &["out_scale.weight"];

/// Linear layers of a tower's block, whose inputs and outputs may be bounded. The weight and the bounds of each are named
/// after it.
pub(crate) const TOWER_Q: &str = "attn_q";
pub(crate) const TOWER_K: &str = "attn_k";
pub(crate) const TOWER_V: &str = "attn_v";
pub(crate) const TOWER_OUTPUT: &str = "attn_out";
pub(crate) const TOWER_GATE: &str = "ffn_gate";
pub(crate) const TOWER_UP: &str = "ffn_up";
pub(crate) const TOWER_DOWN: &str = "ffn_down";

/// Of a block of the vision tower, in the order in which [`PACKED_BOUNDS`] has them.
pub(crate) const VISION_LINEARS: [&str; 7] =
    [TOWER_Q, TOWER_K, TOWER_V, TOWER_OUTPUT, TOWER_GATE, TOWER_UP, TOWER_DOWN];

/// The bounds of all linear layers of the vision tower, four to each, in early files of Ollama.
pub(crate) const PACKED_BOUNDS: &str = "v.clamp_data";
/// How the names of a linear layer's bounds end, in the order in which [`PACKED_BOUNDS`] has them.
pub(crate) const BOUNDS: [&str; 4] = ["input_min", "input_max", "output_min", "output_max"];

/// What projects the audio tower's rows, or samples where there is no tower, to the text model.
pub(crate) const AUDIO_PROJECTION: &str = "mm.a.input_projection.weight";
/// The convolutions in front of the audio tower.
pub(crate) const CONVOLUTIONS: [&str; 2] = ["a.conv1d.0.weight", "a.conv1d.1.weight"];
/// Their norms.
pub(crate) const CONVOLUTION_NORMS: [&str; 2] = ["a.conv1d.0.norm.weight", "a.conv1d.1.norm.weight"];
/// How the names of an audio tower's blocks begin.
pub(crate) const AUDIO_BLOCKS: &str = "a.blk.";

/// Names of the audio tower that mean something else in llama.cpp's projector files than in Ollama's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AudioNames {
    /// From what the convolutions leave to the tower.
    pub(crate) input: &'static str,
    /// From the tower to its result, and what is added there.
    pub(crate) output: &'static str,
    pub(crate) output_bias: &'static str,
    /// Norms of a block: before attention, after it, and of the block's result.
    pub(crate) attention_norm: LayerName,
    pub(crate) post_attention_norm: LayerName,
    pub(crate) block_norm: LayerName,
    /// The projection of distances to keys.
    pub(crate) distances: LayerName,
}

/// Names of llama.cpp's converter.
pub(crate) const PROJECTOR_AUDIO: AudioNames = AudioNames {
    input: "a.input_projection.weight",
    output: "a.pre_encode.out.weight",
    output_bias: "a.pre_encode.out.bias",
    attention_norm: &["attn_pre_norm.weight"],
    post_attention_norm: &["attn_post_norm.weight"],
    block_norm: &["ln2.weight"],
    distances: &["attn_k_rel.weight"],
};

/// Names of Ollama's converter, and of ours.
pub(crate) const SINGLE_FILE_AUDIO: AudioNames = AudioNames {
    input: "a.pre_encode.out.weight",
    output: "mm.a.fc.weight",
    output_bias: "mm.a.fc.bias",
    attention_norm: &["ln1.weight"],
    post_attention_norm: &["ln2.weight"],
    block_norm: &["layer_pre_norm.weight"],
    distances: &["linear_pos.weight"],
};

/// The two feed-forwards of a block of the audio tower: norm, linear layers, norm.
pub(crate) const AUDIO_FEED_FORWARDS: [[&str; 4]; 2] = [
    ["ffn_norm.weight", "ffn_up", "ffn_down", "ffn_post_norm.weight"],
    ["ffn_norm_1.weight", "ffn_up_1", "ffn_down_1", "ffn_post_norm_1.weight"],
];
/// The norm before a block's convolution, and the one after it: the names say it the other way round.
pub(crate) const BEFORE_CONVOLUTION: LayerName = &["conv_norm.weight"];
pub(crate) const AFTER_CONVOLUTION: LayerName = &["norm_conv.weight"];
pub(crate) const CONVOLUTION_START: &str = "conv_pw1";
pub(crate) const CONVOLUTION_END: &str = "conv_pw2";
pub(crate) const CONVOLUTION_KERNEL: LayerName = &["conv_dw.weight"];
/// Factors of queries, with the softplus of the model applied.
pub(crate) const QUERY_SCALE: LayerName = &["per_dim_scale.weight"];
/// Linear layers of a block of the audio tower whose inputs and outputs may be bounded.
pub(crate) const AUDIO_LINEARS: [&str; 10] = [
    TOWER_Q,
    TOWER_K,
    TOWER_V,
    TOWER_OUTPUT,
    CONVOLUTION_START,
    CONVOLUTION_END,
    TOWER_UP,
    TOWER_DOWN,
    "ffn_up_1",
    "ffn_down_1",
];
