"""Names of tensors in a Hugging Face checkpoint and in Ollama's single GGUF files, and back."""

import re

_TEXT = {
    "input_layernorm.weight": "attn_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.k_proj.weight": "attn_k.weight",
    "self_attn.v_proj.weight": "attn_v.weight",
    "self_attn.o_proj.weight": "attn_output.weight",
    "self_attn.q_norm.weight": "attn_q_norm.weight",
    "self_attn.k_norm.weight": "attn_k_norm.weight",
    "post_attention_layernorm.weight": "post_attention_norm.weight",
    "pre_feedforward_layernorm.weight": "ffn_norm.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
    "post_feedforward_layernorm.weight": "post_ffw_norm.weight",
    "per_layer_input_gate.weight": "inp_gate.weight",
    "per_layer_projection.weight": "proj.weight",
    "post_per_layer_input_norm.weight": "post_norm.weight",
    "layer_scalar": "layer_output_scale.weight",
}
_VISION = {
    "input_layernorm": "ln1", "post_attention_layernorm": "attn_post_norm", "pre_feedforward_layernorm": "ln2", "post_feedforward_layernorm": "ffn_post_norm",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_out", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}
_AUDIO = {
    "feed_forward1.pre_layer_norm": "ffn_norm", "feed_forward1.ffw_layer_1": "ffn_up", "feed_forward1.ffw_layer_2": "ffn_down", "feed_forward1.post_layer_norm": "ffn_post_norm",
    "feed_forward2.pre_layer_norm": "ffn_norm_1", "feed_forward2.ffw_layer_1": "ffn_up_1", "feed_forward2.ffw_layer_2": "ffn_down_1", "feed_forward2.post_layer_norm": "ffn_post_norm_1",
    "norm_pre_attn": "ln1", "norm_post_attn": "ln2", "norm_out": "layer_pre_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.post": "attn_out",
    "self_attn.relative_k_proj": "linear_pos", "self_attn.per_dim_scale": "per_dim_scale.weight",
    "lconv1d.pre_layer_norm": "conv_norm", "lconv1d.conv_norm": "norm_conv", "lconv1d.linear_start": "conv_pw1", "lconv1d.linear_end": "conv_pw2", "lconv1d.depthwise_conv1d": "conv_dw",
}
_OTHER = {
    "model.language_model.embed_tokens.weight": "token_embd.weight",
    "model.language_model.norm.weight": "output_norm.weight",
    "model.language_model.embed_tokens_per_layer.weight": "per_layer_token_embd.weight",
    "model.language_model.per_layer_model_projection.weight": "per_layer_model_proj.weight",
    "model.language_model.per_layer_projection_norm.weight": "per_layer_proj_norm.weight",
    "model.vision_tower.patch_embedder.input_proj.weight": "v.patch_embd.weight",
    "model.vision_tower.patch_embedder.position_embedding_table": "v.position_embd.weight",
    "model.embed_vision.embedding_projection.weight": "mm.input_projection.weight",
    "model.audio_tower.subsample_conv_projection.layer0.conv.weight": "a.conv1d.0.weight",
    "model.audio_tower.subsample_conv_projection.layer1.conv.weight": "a.conv1d.1.weight",
    "model.audio_tower.subsample_conv_projection.layer0.norm.weight": "a.conv1d.0.norm.weight",
    "model.audio_tower.subsample_conv_projection.layer1.norm.weight": "a.conv1d.1.norm.weight",
    "model.audio_tower.subsample_conv_projection.input_proj_linear.weight": "a.pre_encode.out.weight",
    "model.audio_tower.output_proj.weight": "mm.a.fc.weight",
    "model.audio_tower.output_proj.bias": "mm.a.fc.bias",
    "model.embed_audio.embedding_projection.weight": "mm.a.input_projection.weight",
}
_BOUND = re.compile(r"\.(input_min|input_max|output_min|output_max)$")


def gguf_name(name: str) -> str | None:
    """The name in the GGUF file of a parameter or buffer; None for what is not stored."""
    if name in _OTHER:
        return _OTHER[name]
    if name == "lm_head.weight":
        return None
    if found := re.fullmatch(r"model\.language_model\.layers\.(\d+)\.(.+)", name):
        return f"blk.{found[1]}.{_TEXT[found[2]]}"
    tower = re.fullmatch(r"model\.(vision_tower\.encoder|audio_tower)\.layers\.(\d+)\.(.+)", name)
    if tower is None:
        return None
    prefix, table = ("v", _VISION) if tower[1].startswith("vision") else ("a", _AUDIO)
    rest, suffix = tower[3], ""
    if bound := _BOUND.search(rest):
        rest, suffix = rest[: bound.start()], bound[0]
    elif rest.endswith(".linear.weight"):
        rest, suffix = rest[: -len(".linear.weight")], ".weight"
    elif rest.endswith(".weight"):
        rest, suffix = rest[: -len(".weight")], ".weight"
    return f"{prefix}.blk.{tower[2]}.{table[rest]}{suffix}"
