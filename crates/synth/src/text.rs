//! The tensors of the decoder, and how large their values must be.
//!
//! Every branch of a layer ends in a norm, so most magnitudes look after themselves: matrices keep the
//! magnitude of their input, and norms are around 1. The few that do not are the constants below.

use rullama_gguf::{Role, is_favoured};

use crate::{
    fill::Fill,
    plan::TensorList,
    shape::{Experts, Text},
};

/// The standard deviation of logits. Rows of the embedding table have the length 1, so this is also what
/// the last norm multiplies by. Well below the soft cap of 30, and spread enough for a clear best token.
const LOGIT_DEVIATION: f32 = 3.0;

/// The standard deviation of attention scores, which no factor scales down: enough to prefer some positions,
/// too little for one to take all.
const SCORE_DEVIATION: f32 = 1.5;

/// The standard deviation of the router's logits: experts get different weights, none gets all.
const ROUTER_DEVIATION: f32 = 1.5;

/// What the sum of a layer is multiplied by. Below 1 on average, so that the residual stream does not grow
/// with depth, and what came in does not outweigh what the layers add: tokens would only repeat themselves.
const LAYER_SCALE: Fill = Fill::Between(0.6, 0.95);

/// Pairs with this factor turn by an angle of practically zero.
const NOT_ROTATED: f32 = 1e30;

/// Lists all tensors of the decoder.
pub(crate) fn list(text: &Text, tokens: u64, list: &mut TensorList) {
    let width = text.width;
    // Multiplied by √width when a token is looked up, which makes each value about 1.
    let unit = Fill::Normal { deviation: (width as f32).sqrt().recip() };
    list.add("token_embd.weight".into(), &[width, tokens], Role::Table, unit);
    if text.per_layer > 0 {
        let rows = u64::from(text.layers) * text.per_layer;
        // Likewise with √per_layer.
        let unit = Fill::Normal { deviation: (text.per_layer as f32).sqrt().recip() };
        list.add("per_layer_token_embd.weight".into(), &[rows, tokens], Role::Table, unit);
        list.matrix("per_layer_model_proj.weight".into(), &[width, rows], Role::PerLayerProjection);
        list.norm("per_layer_proj_norm.weight".into(), text.per_layer, 1.0);
    }
    list.norm("output_norm.weight".into(), width, LOGIT_DEVIATION);
    let factors = rope_factors(text.global.width);
    list.add("rope_freqs.weight".into(), &[factors.len() as u64], Role::Exact, Fill::Values(factors));

    let mut values = 0;
    let value_matrices = (0..text.layers).filter(|&layer| text.has_values(layer)).count() as u32;
    for layer in 0..text.layers {
        let favoured = |index, count| if is_favoured(index, count) { Role::Favoured } else { Role::Matrix };
        let value_role = favoured(values, value_matrices);
        values += u32::from(text.has_values(layer));
        attention(text, layer, value_role, list);
        let down_role = favoured(layer, text.layers);
        feed_forward(text, layer, down_role, list);
        if let Some(experts) = text.experts {
            expert_branch(experts, width, layer, down_role, list);
        }
        if text.per_layer > 0 {
            list.matrix(name(layer, "inp_gate.weight"), &[width, text.per_layer], Role::Matrix);
            list.matrix(name(layer, "proj.weight"), &[text.per_layer, width], Role::Matrix);
            list.norm(name(layer, "post_norm.weight"), width, 1.0);
        }
        list.add(name(layer, "layer_output_scale.weight"), &[1], Role::Exact, LAYER_SCALE);
    }
}

fn name(layer: u32, part: &str) -> String {
    format!("blk.{layer}.{part}")
}

/// What the angles of a global layer are divided by: only the first quarter of the pairs is rotated.
fn rope_factors(head_width: u64) -> Vec<f32> {
    let pairs = head_width / 2;
    (0..pairs).map(|pair| if pair < pairs / 4 { 1.0 } else { NOT_ROTATED }).collect()
}

/// Layers that borrow keys and values list their own all the same, as released files do.
fn attention(text: &Text, layer: u32, value_role: Role, list: &mut TensorList) {
    let width = text.width;
    let heads = text.key_heads(layer);
    let (queries, keys) = (text.heads * heads.width, heads.count * heads.width);
    list.norm(name(layer, "attn_norm.weight"), width, 1.0);
    list.matrix(name(layer, "attn_q.weight"), &[width, queries], Role::Matrix);
    list.matrix(name(layer, "attn_k.weight"), &[width, keys], Role::Matrix);
    if text.has_values(layer) {
        list.matrix(name(layer, "attn_v.weight"), &[width, keys], value_role);
    }
    // A score is the sum of as many products as a head is wide.
    let (query_norm, key_norm) = (1.0, SCORE_DEVIATION / (heads.width as f32).sqrt());
    list.norm(name(layer, "attn_q_norm.weight"), heads.width, query_norm);
    list.norm(name(layer, "attn_k_norm.weight"), heads.width, key_norm);
    list.matrix(name(layer, "attn_output.weight"), &[queries, width], Role::Matrix);
    list.norm(name(layer, "post_attention_norm.weight"), width, 1.0);
}

fn feed_forward(text: &Text, layer: u32, down_role: Role, list: &mut TensorList) {
    let (width, inner) = (text.width, text.feed_forward(layer));
    list.norm(name(layer, "ffn_norm.weight"), width, 1.0);
    list.matrix(name(layer, "ffn_gate.weight"), &[width, inner], Role::Matrix);
    list.matrix(name(layer, "ffn_up.weight"), &[width, inner], Role::Matrix);
    list.matrix(name(layer, "ffn_down.weight"), &[inner, width], down_role);
    list.norm(name(layer, "post_ffw_norm.weight"), width, 1.0);
}

/// The experts run beside the dense branch, and each branch has a norm of its own.
fn expert_branch(experts: Experts, width: u64, layer: u32, down_role: Role, list: &mut TensorList) {
    let Experts { count, width: inner, .. } = experts;
    // The router divides its input by √width, so its weights have the deviation of its logits.
    let router = Fill::Normal { deviation: ROUTER_DEVIATION };
    list.add(name(layer, "ffn_gate_inp.weight"), &[width, count], Role::Exact, router);
    list.norm(name(layer, "ffn_gate_inp.scale"), width, 1.0);
    list.norm(name(layer, "pre_ffw_norm_2.weight"), width, 1.0);
    list.matrix(name(layer, "ffn_gate_up_exps.weight"), &[width, 2 * inner, count], Role::Matrix);
    list.matrix(name(layer, "ffn_down_exps.weight"), &[inner, width, count], down_role);
    list.norm(name(layer, "ffn_down_exps.scale"), count, 1.0);
    list.norm(name(layer, "post_ffw_norm_1.weight"), width, 1.0);
    list.norm(name(layer, "post_ffw_norm_2.weight"), width, 1.0);
}
