//! A graph that reads inputs, attends within itself and has several outputs, as towers do.

use rullama_graph::{AttendShape, Builder, Graph, Mask, Rope, Rows, Weight, WeightInfo};

/// The model whose weights it reads, and the columns of its rows.
pub(crate) const MODEL: &str = "tiny-e2b-Q4_K_M";
pub(crate) const WIDTH: u32 = 256;

/// The first layer of the test model over rows that are given, whose heads may be narrower, pooled by threes.
pub(crate) fn tower(head_width: u32, mask: Mask) -> Graph {
    let builder = Builder::new();
    let rows = Rows::Of(builder.domain("patches"));
    let matrix = |name: &str, width, rows| -> Weight {
        builder.weight(WeightInfo::matrix(format!("blk.0.{name}.weight"), width, rows))
    };
    let norm = |name: &str| builder.weight(WeightInfo::vector(format!("blk.0.{name}.weight"), WIDTH));
    let patches = builder.input("patches", rows, WIDTH);
    let x = patches + builder.input("places", rows, WIDTH).scale(0.5);
    let normed = x.rms_norm(norm("attn_norm"), 1e-6);
    let q = normed.linear(matrix("attn_q", WIDTH, 512));
    let k = normed.linear(matrix("attn_k", WIDTH, WIDTH));
    let v = normed.linear(matrix("attn_v", WIDTH, WIDTH));
    let rope = Rope::new(head_width, 10_000.0);
    let shape = AttendShape { heads: 512 / head_width, kv_heads: WIDTH / head_width, head_width, mask };
    let attended = q
        .rms_norm_unweighted(head_width, 1e-6)
        .rope(rope)
        .attend_rows(k.rms_norm_unweighted(head_width, 1e-6).rope(rope), v, shape)
        .linear(matrix("attn_output", 512, WIDTH));
    let x = x + attended.rms_norm(norm("post_attention_norm"), 1e-6);
    let normed = x.rms_norm(norm("ffn_norm"), 1e-6);
    let gate = normed.linear(matrix("ffn_gate", WIDTH, 512));
    let hidden = gate.gelu_mul(normed.linear(matrix("ffn_up", WIDTH, 512)));
    let y = x + hidden.linear(matrix("ffn_down", 512, WIDTH)).rms_norm(norm("post_ffw_norm"), 1e-6);
    // One value is given twice, and one is an input.
    builder.finish_with(&[
        ("cells", y.mean_rows(3, "cells")),
        ("rows", y),
        ("patches", patches),
        ("again", y),
    ])
}
