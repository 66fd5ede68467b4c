//! Which format each tensor gets.

use std::{collections::BTreeMap, path::Path};

use rullama_convert::{ConvertError, ConvertOptions, Mix, plan};
use rullama_gguf::Format;

use crate::checkpoint::FOLDER;

fn formats(options: &ConvertOptions) -> BTreeMap<String, Format> {
    let plan = plan(Path::new(FOLDER), options).unwrap();
    plan.tensors().iter().map(|tensor| (tensor.name().to_owned(), tensor.format())).collect()
}

/// A row of 48 is no whole number of blocks; norms, scales, bounds, convolutions and positions are never quantised.
#[test]
fn a_mix_gives_each_tensor_what_it_can_have() {
    let formats = formats(&ConvertOptions { mix: Mix::Q8_0, ..ConvertOptions::default() });
    for (name, expected) in [
        ("token_embd.weight", Format::Q8_0),
        ("per_layer_token_embd.weight", Format::Q8_0),
        ("per_layer_model_proj.weight", Format::BF16),
        ("blk.0.attn_q.weight", Format::Q8_0),
        ("blk.0.ffn_down.weight", Format::F16),
        ("blk.2.ffn_down.weight", Format::Q8_0),
        ("blk.0.attn_norm.weight", Format::F32),
        ("blk.0.layer_output_scale.weight", Format::F32),
        ("rope_freqs.weight", Format::F32),
        ("v.patch_embd.weight", Format::F16),
        ("v.position_embd.weight", Format::F32),
        ("v.blk.0.attn_q.weight", Format::F16),
        ("v.blk.0.attn_q.input_min", Format::F32),
        ("a.conv1d.1.weight", Format::F32),
        ("a.blk.0.conv_dw.weight", Format::F32),
        ("a.blk.0.ffn_up.weight", Format::BF16),
        ("mm.a.fc.weight", Format::F16),
    ] {
        assert_eq!(formats[name], expected, "{name}");
    }
}

#[test]
fn rules_go_before_the_mix() {
    let rules = ["v.*=q8_0", "a.*=f16", "a.blk.0.ffn_up*=q4_0", "v.position_embd.weight=f16", "blk.0.*=f32"];
    let rules = rules.map(|rule| rule.parse().unwrap()).to_vec();
    let formats = formats(&ConvertOptions { mix: Mix::Q8_0, rules, ..ConvertOptions::default() });
    for (name, expected) in [
        ("v.blk.0.attn_q.weight", Format::Q8_0),
        // The side of a patch is no whole block.
        ("v.patch_embd.weight", Format::F16),
        ("v.blk.0.ln1.weight", Format::F32),
        ("v.position_embd.weight", Format::F16),
        ("a.blk.0.attn_q.weight", Format::F16),
        ("a.blk.0.ffn_up.weight", Format::F16),
        ("a.conv1d.0.weight", Format::F32),
        ("blk.0.attn_q.weight", Format::F32),
        ("blk.1.attn_q.weight", Format::Q8_0),
    ] {
        assert_eq!(formats[name], expected, "{name}");
    }
}

#[test]
fn a_rule_for_nothing_is_refused() {
    let rules = vec!["blk.*.attn_qq.weight=q8_0".parse().unwrap()];
    let error = plan(Path::new(FOLDER), &ConvertOptions { rules, ..ConvertOptions::default() }).unwrap_err();
    assert!(matches!(&error, ConvertError::UnusedRule { pattern } if pattern.contains("qq")), "{error}");
}

#[test]
fn towers_can_be_left_out() {
    let names = formats(&ConvertOptions { towers: false, ..ConvertOptions::default() }).into_keys();
    let names: Vec<String> = names.collect();
    assert!(
        names
            .iter()
            .all(|name| !name.starts_with("v.") && !name.starts_with("a.") && !name.starts_with("mm."))
    );
    assert_eq!(names.len(), 6 + 2 * 17 + 2 * 14);
}
