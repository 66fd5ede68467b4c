"""How each tensor is stored in the GGUF file, by the name it has there; and how many bytes that takes.

Training ends with weights rounded to these formats, and the converter is told the same list, so that the file holds what was
trained. The first pattern that matches counts.
"""

import fnmatch
import json
from pathlib import Path

RULES = (
    # The head reads every row of the embedding for every token, and errors in it go straight into the answer.
    ("token_embd.weight", "Q6_K"),
    # A third of the model; it is looked up, never multiplied, and forgives much.
    ("per_layer_token_embd.weight", "Q4_K"),
    ("per_layer_model_proj.weight", "Q8_0"),
    ("blk.*.attn_v.weight", "Q6_K"),
    ("blk.*.attn_k.weight", "Q6_K"),
    ("blk.*.ffn_down.weight", "Q6_K"),
    ("blk.*.inp_gate.weight", "Q6_K"),
    ("blk.*.*norm*", "F32"),
    ("blk.*.layer_output_scale.weight", "F32"),
    ("blk.*.weight", "Q4_K"),
    ("v.patch_embd.weight", "F16"),
    ("v.position_embd.weight", "F32"),
    ("v.blk.*.ffn_*.weight", "Q4_K"),
    ("v.blk.*.attn_[qkv].weight", "Q6_K"),
    ("v.blk.*.attn_out.weight", "Q6_K"),
    ("a.blk.*.ffn_up*.weight", "Q4_K"),
    ("a.blk.*.ffn_down*.weight", "Q4_K"),
    ("a.blk.*.attn_[qkv].weight", "Q6_K"),
    ("a.blk.*.attn_out.weight", "Q6_K"),
    ("a.blk.*.linear_pos.weight", "Q6_K"),
    ("a.blk.*.conv_pw?.weight", "Q6_K"),
    ("a.pre_encode.out.weight", "Q8_0"),
    ("mm.*.weight", "Q8_0"),
    ("*", "F32"),
)
# Norms of the feed-forward parts have names that begin like its matrices.
_VECTORS = ("norm", "bias")

_BITS = {"F32": 32, "F16": 16, "Q8_0": 8.5, "Q6_K": 6.5625, "Q4_K": 4.5}


def format_of(name: str, dimensions: int = 2) -> str:
    """The format of the tensor with this name in the file."""
    if dimensions < 2 or any(part in name for part in _VECTORS):
        return "F32"
    return next(format for pattern, format in RULES if fnmatch.fnmatchcase(name, pattern))


def bytes_of(name: str, shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return int(count * _BITS[format_of(name, len(shape))] / 8)


def write_rules(path: Path) -> None:
    """The list for the converter: [pattern, format], the first that matches counts."""
    path.write_text(json.dumps([list(rule) for rule in RULES], indent=1) + "\n", encoding="utf-8")
