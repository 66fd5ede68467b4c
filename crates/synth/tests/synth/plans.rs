//! Counts and shapes, compared with what is known of released files.

use std::collections::BTreeMap;

use rullama_gguf::Format;
use rullama_synth::{Mix, Plan, Preset, SynthOptions, plan};

/// A plan with few tokens: the vocabulary takes longer than all the rest, and only tables depend on it.
fn planned(preset: Preset, mix: Mix, towers: bool) -> Plan {
    plan(preset, &SynthOptions { mix, towers, vocabulary: Some(512), ..SynthOptions::default() }).unwrap()
}

fn formats(plan: &Plan) -> BTreeMap<Format, usize> {
    let mut counts = BTreeMap::new();
    for tensor in plan.tensors() {
        *counts.entry(tensor.format()).or_default() += 1;
    }
    counts
}

fn dims(plan: &Plan, name: &str) -> Option<Vec<u64>> {
    plan.tensors().iter().find(|tensor| tensor.name() == name).map(|tensor| tensor.dims().to_vec())
}

#[test]
fn every_preset_has_as_many_tensors_as_the_released_model() {
    for (preset, count) in [
        (Preset::E2B, 601),
        (Preset::E4B, 720),
        (Preset::DENSE_12B, 667),
        (Preset::EXPERTS_26B, 658),
        (Preset::DENSE_31B, 833),
        // With the layers they have, by the same rules.
        (Preset::TINY_E2B, 6 + 17 * 10),
        (Preset::TINY_E4B, 6 + 17 * 12),
        (Preset::TINY_12B, 3 + 14 * 10 + 13 * 2),
        (Preset::TINY_26B, 3 + 22 * 10 + 21 * 2),
        (Preset::TINY_31B, 3 + 14 * 10 + 13 * 2),
    ] {
        for mix in Mix::ALL {
            assert_eq!(planned(preset, mix, false).tensors().len(), count, "{preset} {mix}");
        }
    }
}

/// As counted in published `Q4_K_M` files.
#[test]
fn the_mix_has_the_formats_of_published_files() {
    use Format::{BF16, F32, Q4_K, Q5_0, Q6_K, Q8_0};
    for (preset, expected) in [
        (Preset::E4B, vec![(F32, 339), (Q4_K, 336), (Q6_K, 44), (BF16, 1)]),
        (Preset::DENSE_12B, vec![(F32, 338), (Q4_K, 284), (Q6_K, 45)]),
        (Preset::EXPERTS_26B, vec![(F32, 392), (Q5_0, 32), (Q8_0, 28), (Q4_K, 192), (Q6_K, 14)]),
    ] {
        let plan = planned(preset, Mix::Q4_K_M, false);
        assert_eq!(formats(&plan), expected.into_iter().collect(), "{preset}");
    }
}

/// Ollama's E4B: 1501 F32, 116 F16, 134 BF16, and 380 quantised.
#[test]
fn towers_have_the_tensors_of_a_published_file() {
    let counts = formats(&planned(Preset::E4B, Mix::Q4_K_M, true));
    assert_eq!(counts[&Format::F32], 1501);
    assert_eq!(counts[&Format::F16], 116);
    assert_eq!(counts[&Format::BF16], 134);
    assert_eq!(counts[&Format::Q4_K] + counts[&Format::Q6_K], 380);
}

#[test]
fn shapes_are_those_of_the_released_models() {
    for (preset, name, expected) in [
        (Preset::E2B, "token_embd.weight", &[1536, 512][..]),
        (Preset::E2B, "per_layer_token_embd.weight", &[8960, 512]),
        (Preset::E2B, "per_layer_model_proj.weight", &[1536, 8960]),
        (Preset::E2B, "rope_freqs.weight", &[256]),
        (Preset::E2B, "blk.3.attn_q.weight", &[1536, 2048]),
        (Preset::E2B, "blk.4.attn_q.weight", &[1536, 4096]),
        (Preset::E2B, "blk.4.attn_output.weight", &[4096, 1536]),
        (Preset::E2B, "blk.34.attn_k.weight", &[1536, 512]),
        (Preset::E2B, "blk.14.ffn_down.weight", &[6144, 1536]),
        (Preset::E2B, "blk.15.ffn_down.weight", &[12_288, 1536]),
        (Preset::E4B, "blk.5.attn_v.weight", &[2560, 1024]),
        (Preset::E4B, "blk.41.ffn_gate.weight", &[2560, 10_240]),
        (Preset::DENSE_12B, "blk.0.attn_v.weight", &[3840, 2048]),
        (Preset::DENSE_12B, "blk.5.attn_k.weight", &[3840, 512]),
        (Preset::EXPERTS_26B, "blk.0.ffn_gate_up_exps.weight", &[2816, 1408, 128]),
        (Preset::EXPERTS_26B, "blk.0.ffn_down_exps.weight", &[704, 2816, 128]),
        (Preset::EXPERTS_26B, "blk.0.ffn_down_exps.scale", &[128]),
        (Preset::EXPERTS_26B, "blk.0.ffn_gate_inp.weight", &[2816, 128]),
        (Preset::DENSE_31B, "blk.59.attn_q.weight", &[5376, 16_384]),
        (Preset::DENSE_31B, "blk.59.attn_k.weight", &[5376, 2048]),
        (Preset::DENSE_31B, "blk.59.attn_q_norm.weight", &[512]),
    ] {
        let plan = planned(preset, Mix::F16, false);
        assert_eq!(dims(&plan, name).as_deref(), Some(expected), "{name} of {preset}");
    }
    for preset in [Preset::DENSE_12B, Preset::EXPERTS_26B, Preset::DENSE_31B] {
        assert_eq!(dims(&planned(preset, Mix::F16, false), "blk.5.attn_v.weight"), None);
    }
}

#[test]
fn tower_shapes_are_those_of_the_released_models() {
    for (preset, name, expected) in [
        (Preset::E2B, "v.patch_embd.weight", &[16, 16, 3, 768][..]),
        (Preset::E2B, "v.position_embd.weight", &[768, 10_240, 2]),
        (Preset::E2B, "mm.input_projection.weight", &[768, 1536]),
        (Preset::E2B, "a.conv1d.1.weight", &[3, 3, 128, 32]),
        (Preset::E2B, "a.pre_encode.out.weight", &[1024, 1024]),
        (Preset::E2B, "mm.a.fc.weight", &[1024, 1536]),
        (Preset::E2B, "a.blk.11.conv_pw1.weight", &[1024, 2048]),
        (Preset::E2B, "a.blk.11.per_dim_scale.weight", &[128]),
        (Preset::DENSE_12B, "v.patch_embd.weight", &[6912, 3840]),
        (Preset::DENSE_12B, "mm.a.input_projection.weight", &[640, 3840]),
        (Preset::EXPERTS_26B, "v.blk.26.ffn_down.weight", &[4304, 1152]),
        (Preset::EXPERTS_26B, "v.blk.0.attn_k_norm.weight", &[72]),
        (Preset::DENSE_31B, "v.std_bias", &[1152]),
    ] {
        let plan = planned(preset, Mix::Q8_0, true);
        assert_eq!(dims(&plan, name).as_deref(), Some(expected), "{name} of {preset}");
    }
    assert_eq!(dims(&planned(Preset::E2B, Mix::Q8_0, true), "v.std_bias"), None);
    assert_eq!(dims(&planned(Preset::DENSE_31B, Mix::Q8_0, true), "v.blk.0.attn_q.input_min"), None);
}

/// A real e2b in `Q4_K_M` takes 3.4 GB.
#[test]
fn sizes_are_known_before_writing() {
    let options = SynthOptions { mix: Mix::Q4_K_M, ..SynthOptions::default() };
    let plan = plan(Preset::E2B, &options).unwrap();
    assert_eq!(dims(&plan, "token_embd.weight").unwrap(), [1536, 262_144]);
    assert_eq!(plan.parameters(), 4_647_450_147);
    assert!((3_380_000_000..3_440_000_000).contains(&plan.data_bytes()), "{}", plan.data_bytes());
}

#[test]
fn names_are_read_in_any_case() {
    for preset in Preset::ALL {
        assert_eq!(preset.name().parse::<Preset>().unwrap(), preset);
        assert_eq!(preset.name().to_uppercase().parse::<Preset>().unwrap(), preset);
    }
    let error = "9b".parse::<Preset>().unwrap_err();
    assert_eq!(error.code(), "synth.preset");
    assert!(error.to_string().contains("26b-a4b"), "{error}");
}
