//! Which tensor of a checkpoint becomes which tensor of the file: the one table of names.
//!
//! Each line has a tensor's name in the checkpoint, its name in the file, its shape in the checkpoint (the fastest
//! varying extent last; files list extents the other way round), what it is for, when it is there, and what is done
//! to its values. Names in the file are those of llama.cpp's converter for the decoder and of Ollama's for the towers.

use Dim::*;
use Kind::*;
use Need::*;
use Transform::*;

/// A line of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
    pub(crate) shape: &'static [Dim],
    pub(crate) kind: Kind,
    pub(crate) need: Need,
    pub(crate) transform: Transform,
}

/// An extent of a tensor, by what it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dim {
    /// A number that no configuration changes.
    Fixed(u64),
    /// Tokens.
    Vocabulary,
    /// Columns of the residual stream of the decoder, or of the tower.
    Width,
    /// Columns of a decoder's residual stream, said of a projection to it.
    TextWidth,
    /// Columns of a layer's per-layer embedding, and those of all layers.
    PerLayer,
    AllLayers,
    /// Columns of one head, of all query heads, and of all key heads.
    Head,
    Queries,
    Keys,
    /// Hidden columns of a feed-forward; of an expert's, and twice as many.
    Inner,
    ExpertInner,
    ExpertInnerTwice,
    Experts,
    /// Positions of a patch along an axis.
    Positions,
    /// Values of a patch: of the tower, and of several together for the model without one.
    Patch,
    LargePatch,
    /// Twice and four times the width.
    TwiceWidth,
    FourWidth,
    /// Channels after each of the convolutions in front of the audio tower, and what the second leaves of all bands.
    FirstChannels,
    SecondChannels,
    Subsampled,
    /// Steps of time that a convolution sees.
    Kernel,
    /// Columns that the audio tower gives.
    Output,
    /// Samples of a frame.
    Samples,
}

/// What a tensor is for, as far as its format depends on that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Never quantised.
    Exact,
    Matrix,
    /// The value projections, and the way back from a feed-forward: some of them are favoured.
    Value,
    Down,
    Table,
    PerLayerProjection,
    /// The vision tower, and all that projects soft tokens to the decoder.
    Vision,
    Audio,
}

/// When a model has a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Always,
    /// In layers with keys of their own. Layers that borrow may have it all the same, unused.
    OwnKeys,
    /// Likewise, and not where keys are used as values.
    OwnValues,
    PerLayerEmbeddings,
    MixtureOfExperts,
    /// With a head that is not the embedding table.
    Untied,
    /// With linear layers that clamp.
    Clipped,
    Standardised,
}

/// What is done to values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transform {
    Copy,
    /// `ln(1 + eˣ)`, which readers expect to be done.
    Softplus,
    /// `[out, 1, kernel]`: the extent in the middle is dropped.
    Depthwise,
    /// Rows are patches, colours of a pixel side by side; in the file each colour is a plane. Of four extents.
    PatchKernel,
    /// The same of two extents, or of one.
    PatchRows,
    /// `[positions, 2, width]` to `[2, positions, width]`.
    SwapAxes,
}

const fn line(from: &'static str, to: &'static str, shape: &'static [Dim], kind: Kind, need: Need) -> Line {
    Line { from, to, shape, kind, need, transform: Copy }
}

const fn changed(transform: Transform, line: Line) -> Line {
    Line { transform, ..line }
}

/// The decoder's tensors outside its layers.
pub(crate) const TEXT: &[Line] = &[
    line("embed_tokens.weight", "token_embd.weight", &[Vocabulary, Width], Table, Always),
    line(
        "embed_tokens_per_layer.weight",
        "per_layer_token_embd.weight",
        &[Vocabulary, AllLayers],
        Table,
        PerLayerEmbeddings,
    ),
    line(
        "per_layer_model_projection.weight",
        "per_layer_model_proj.weight",
        &[AllLayers, Width],
        PerLayerProjection,
        PerLayerEmbeddings,
    ),
    line(
        "per_layer_projection_norm.weight",
        "per_layer_proj_norm.weight",
        &[PerLayer],
        Exact,
        PerLayerEmbeddings,
    ),
    line("norm.weight", "output_norm.weight", &[Width], Exact, Always),
];

/// The head, which is outside the decoder in a checkpoint.
pub(crate) const HEAD: Line = line("lm_head.weight", "output.weight", &[Vocabulary, Width], Table, Untied);

/// Of each layer: `layers.N.` becomes `blk.N.`.
#[rustfmt::skip]
pub(crate) const TEXT_LAYER: &[Line] = &[
    line("input_layernorm.weight", "attn_norm.weight", &[Width], Exact, Always),
    line("self_attn.q_proj.weight", "attn_q.weight", &[Queries, Width], Matrix, Always),
    line("self_attn.k_proj.weight", "attn_k.weight", &[Keys, Width], Matrix, OwnKeys),
    line("self_attn.v_proj.weight", "attn_v.weight", &[Keys, Width], Value, OwnValues),
    line("self_attn.q_norm.weight", "attn_q_norm.weight", &[Head], Exact, Always),
    line("self_attn.k_norm.weight", "attn_k_norm.weight", &[Head], Exact, OwnKeys),
    line("self_attn.o_proj.weight", "attn_output.weight", &[Width, Queries], Matrix, Always),
    line("post_attention_layernorm.weight", "post_attention_norm.weight", &[Width], Exact, Always),
    line("pre_feedforward_layernorm.weight", "ffn_norm.weight", &[Width], Exact, Always),
    line("mlp.gate_proj.weight", "ffn_gate.weight", &[Inner, Width], Matrix, Always),
    line("mlp.up_proj.weight", "ffn_up.weight", &[Inner, Width], Matrix, Always),
    line("mlp.down_proj.weight", "ffn_down.weight", &[Width, Inner], Down, Always),
    line("post_feedforward_layernorm.weight", "post_ffw_norm.weight", &[Width], Exact, Always),
    line("router.proj.weight", "ffn_gate_inp.weight", &[Experts, Width], Exact, MixtureOfExperts),
    line("router.scale", "ffn_gate_inp.scale", &[Width], Exact, MixtureOfExperts),
    line("pre_feedforward_layernorm_2.weight", "pre_ffw_norm_2.weight", &[Width], Exact, MixtureOfExperts),
    line("experts.gate_up_proj", "ffn_gate_up_exps.weight", &[Experts, ExpertInnerTwice, Width], Matrix, MixtureOfExperts),
    line("experts.down_proj", "ffn_down_exps.weight", &[Experts, Width, ExpertInner], Down, MixtureOfExperts),
    line("router.per_expert_scale", "ffn_down_exps.scale", &[Experts], Exact, MixtureOfExperts),
    line("post_feedforward_layernorm_1.weight", "post_ffw_norm_1.weight", &[Width], Exact, MixtureOfExperts),
    line("post_feedforward_layernorm_2.weight", "post_ffw_norm_2.weight", &[Width], Exact, MixtureOfExperts),
    line("per_layer_input_gate.weight", "inp_gate.weight", &[PerLayer, Width], Matrix, PerLayerEmbeddings),
    line("per_layer_projection.weight", "proj.weight", &[Width, PerLayer], Matrix, PerLayerEmbeddings),
    line("post_per_layer_input_norm.weight", "post_norm.weight", &[Width], Exact, PerLayerEmbeddings),
    line("layer_scalar", "layer_output_scale.weight", &[Fixed(1)], Exact, Always),
];

/// The vision tower outside its blocks; all names begin with `model.`.
#[rustfmt::skip]
pub(crate) const VISION: &[Line] = &[
    changed(PatchKernel, line("vision_tower.patch_embedder.input_proj.weight", "v.patch_embd.weight", &[Width, Patch], Vision, Always)),
    line("vision_tower.patch_embedder.position_embedding_table", "v.position_embd.weight", &[Fixed(2), Positions, Width], Exact, Always),
    line("vision_tower.std_bias", "v.std_bias", &[Width], Exact, Standardised),
    line("vision_tower.std_scale", "v.std_scale", &[Width], Exact, Standardised),
    line("embed_vision.embedding_projection.weight", "mm.input_projection.weight", &[TextWidth, Width], Vision, Always),
];

/// Of each block: `model.vision_tower.encoder.layers.N.` becomes `v.blk.N.`.
#[rustfmt::skip]
pub(crate) const VISION_BLOCK: &[Line] = &[
    line("input_layernorm.weight", "ln1.weight", &[Width], Exact, Always),
    line("pre_feedforward_layernorm.weight", "ln2.weight", &[Width], Exact, Always),
    line("post_attention_layernorm.weight", "attn_post_norm.weight", &[Width], Exact, Always),
    line("post_feedforward_layernorm.weight", "ffn_post_norm.weight", &[Width], Exact, Always),
    line("self_attn.q_norm.weight", "attn_q_norm.weight", &[Head], Exact, Always),
    line("self_attn.k_norm.weight", "attn_k_norm.weight", &[Head], Exact, Always),
];

/// Linear layers of each block, with the bounds of [`BOUNDS`] beside them where they clamp.
pub(crate) const VISION_LINEAR: &[Line] = &[
    line("self_attn.q_proj", "attn_q", &[Width, Width], Vision, Always),
    line("self_attn.k_proj", "attn_k", &[Width, Width], Vision, Always),
    line("self_attn.v_proj", "attn_v", &[Width, Width], Vision, Always),
    line("self_attn.o_proj", "attn_out", &[Width, Width], Vision, Always),
    line("mlp.gate_proj", "ffn_gate", &[Inner, Width], Vision, Always),
    line("mlp.up_proj", "ffn_up", &[Inner, Width], Vision, Always),
    line("mlp.down_proj", "ffn_down", &[Width, Inner], Vision, Always),
];

/// What is in the place of a vision tower in the model without one; all names begin with `model.`.
#[rustfmt::skip]
pub(crate) const DIRECT_VISION: &[Line] = &[
    changed(PatchRows, line("vision_embedder.patch_dense.weight", "v.patch_embd.weight", &[Width, LargePatch], Vision, Always)),
    line("vision_embedder.patch_dense.bias", "v.patch_embd.bias", &[Width], Exact, Always),
    changed(PatchRows, line("vision_embedder.patch_ln1.weight", "v.patch_norm.1.weight", &[LargePatch], Exact, Always)),
    changed(PatchRows, line("vision_embedder.patch_ln1.bias", "v.patch_norm.1.bias", &[LargePatch], Exact, Always)),
    line("vision_embedder.patch_ln2.weight", "v.patch_norm.2.weight", &[Width], Exact, Always),
    line("vision_embedder.patch_ln2.bias", "v.patch_norm.2.bias", &[Width], Exact, Always),
    line("vision_embedder.pos_norm.weight", "v.patch_norm.3.weight", &[Width], Exact, Always),
    line("vision_embedder.pos_norm.bias", "v.patch_norm.3.bias", &[Width], Exact, Always),
    changed(SwapAxes, line("vision_embedder.pos_embedding", "v.position_embd.weight", &[Positions, Fixed(2), Width], Exact, Always)),
    line("embed_vision.embedding_projection.weight", "mm.input_projection.weight", &[TextWidth, Width], Vision, Always),
];

/// The audio tower outside its blocks; all names begin with `model.`.
///
/// `a.pre_encode.out` is what stands before the blocks, and `mm.a.fc` what stands after them: in llama.cpp's own files
/// the first name means the second matrix.
#[rustfmt::skip]
pub(crate) const AUDIO: &[Line] = &[
    line("audio_tower.subsample_conv_projection.layer0.conv.weight", "a.conv1d.0.weight", &[FirstChannels, Fixed(1), Fixed(3), Fixed(3)], Exact, Always),
    line("audio_tower.subsample_conv_projection.layer0.norm.weight", "a.conv1d.0.norm.weight", &[FirstChannels], Exact, Always),
    line("audio_tower.subsample_conv_projection.layer1.conv.weight", "a.conv1d.1.weight", &[SecondChannels, FirstChannels, Fixed(3), Fixed(3)], Exact, Always),
    line("audio_tower.subsample_conv_projection.layer1.norm.weight", "a.conv1d.1.norm.weight", &[SecondChannels], Exact, Always),
    line("audio_tower.subsample_conv_projection.input_proj_linear.weight", "a.pre_encode.out.weight", &[Width, Subsampled], Audio, Always),
    line("audio_tower.output_proj.weight", "mm.a.fc.weight", &[Output, Width], Vision, Always),
    line("audio_tower.output_proj.bias", "mm.a.fc.bias", &[Output], Exact, Always),
    line("embed_audio.embedding_projection.weight", "mm.a.input_projection.weight", &[TextWidth, Output], Vision, Always),
];

/// Of each block: `model.audio_tower.layers.N.` becomes `a.blk.N.`.
///
/// `conv_norm` in the file is the norm before the convolution, which a checkpoint calls `pre_layer_norm`; what a
/// checkpoint calls `conv_norm` is `norm_conv`.
#[rustfmt::skip]
pub(crate) const AUDIO_BLOCK: &[Line] = &[
    line("feed_forward1.pre_layer_norm.weight", "ffn_norm.weight", &[Width], Exact, Always),
    line("feed_forward1.post_layer_norm.weight", "ffn_post_norm.weight", &[Width], Exact, Always),
    line("feed_forward2.pre_layer_norm.weight", "ffn_norm_1.weight", &[Width], Exact, Always),
    line("feed_forward2.post_layer_norm.weight", "ffn_post_norm_1.weight", &[Width], Exact, Always),
    line("norm_pre_attn.weight", "ln1.weight", &[Width], Exact, Always),
    line("norm_post_attn.weight", "ln2.weight", &[Width], Exact, Always),
    line("norm_out.weight", "layer_pre_norm.weight", &[Width], Exact, Always),
    line("lconv1d.pre_layer_norm.weight", "conv_norm.weight", &[Width], Exact, Always),
    line("lconv1d.conv_norm.weight", "norm_conv.weight", &[Width], Exact, Always),
    changed(Depthwise, line("lconv1d.depthwise_conv1d.weight", "conv_dw.weight", &[Width, Fixed(1), Kernel], Exact, Always)),
    changed(Softplus, line("self_attn.per_dim_scale", "per_dim_scale.weight", &[Head], Exact, Always)),
    line("self_attn.relative_k_proj.weight", "linear_pos.weight", &[Width, Width], Audio, Always),
];

/// Linear layers of each block, with the bounds of [`BOUNDS`] beside them where they clamp.
pub(crate) const AUDIO_LINEAR: &[Line] = &[
    line("self_attn.q_proj", "attn_q", &[Width, Width], Audio, Always),
    line("self_attn.k_proj", "attn_k", &[Width, Width], Audio, Always),
    line("self_attn.v_proj", "attn_v", &[Width, Width], Audio, Always),
    line("self_attn.post", "attn_out", &[Width, Width], Audio, Always),
    line("lconv1d.linear_start", "conv_pw1", &[TwiceWidth, Width], Audio, Always),
    line("lconv1d.linear_end", "conv_pw2", &[Width, Width], Audio, Always),
    line("feed_forward1.ffw_layer_1", "ffn_up", &[FourWidth, Width], Audio, Always),
    line("feed_forward1.ffw_layer_2", "ffn_down", &[Width, FourWidth], Audio, Always),
    line("feed_forward2.ffw_layer_1", "ffn_up_1", &[FourWidth, Width], Audio, Always),
    line("feed_forward2.ffw_layer_2", "ffn_down_1", &[Width, FourWidth], Audio, Always),
];

/// What is in the place of an audio tower in the model without one; all names begin with `model.`.
#[rustfmt::skip]
pub(crate) const DIRECT_AUDIO: &[Line] = &[
    line("embed_audio.embedding_projection.weight", "mm.a.input_projection.weight", &[TextWidth, Samples], Vision, Always),
];

/// The bounds of what goes into a linear layer and of what comes out, named alike on both sides.
pub(crate) const BOUNDS: &[Line] = &[
    line("input_min", "input_min", &[], Exact, Clipped),
    line("input_max", "input_max", &[], Exact, Clipped),
    line("output_min", "output_min", &[], Exact, Clipped),
    line("output_max", "output_max", &[], Exact, Clipped),
];
