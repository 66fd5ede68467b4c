//! The tensors that make soft tokens of images and sound, named as in the files that Ollama publishes.

use rullama_gguf::Role;

use crate::{
    fill::Fill,
    plan::TensorList,
    shape::{Audio, AudioTower, Shape, Vision, VisionTower},
};

/// The side of a patch of the tower, in pixels.
pub(crate) const PATCH: u64 = 16;
/// How many patches, along each axis, become one soft token.
pub(crate) const POOLED: u64 = 3;
pub(crate) const CHANNELS: u64 = 3;
/// How many steps of time a depthwise convolution sees.
pub(crate) const KERNEL: u64 = 5;
/// Samples in a frame of the model that hears without a tower.
pub(crate) const SAMPLES: u64 = 640;

/// The subsampling convolutions of the audio tower: channels after each, and what is left of the mel bands.
const CONVOLVED: [u64; 2] = [128, 32];
const BANDS_LEFT: u64 = 32;

/// The standard deviation of attention scores, as in the decoder.
const SCORE_DEVIATION: f32 = 1.5;

/// Where clamps are. Activations are around 1, so that a clamp acts on few of them, but on some.
const CLAMP: [f32; 2] = [2.5, 4.0];

/// Lists the tensors of all towers that a model has.
pub(crate) fn list(shape: &Shape, list: &mut TensorList) {
    let width = shape.text.width;
    match &shape.vision {
        Vision::Tower(tower) => vision_tower(tower, width, list),
        Vision::Direct { positions } => direct_vision(*positions, width, list),
    }
    match &shape.audio {
        Some(Audio::Tower(tower)) => {
            audio_ends(tower, width, list);
            (0..tower.blocks).for_each(|block| audio_block(tower, block, list));
        }
        Some(Audio::Direct) => {
            list.matrix("mm.a.input_projection.weight".into(), &[SAMPLES, width], Role::Vision);
        }
        None => {}
    }
}

fn vision_tower(tower: &VisionTower, text_width: u64, list: &mut TensorList) {
    let &VisionTower { blocks, width, heads, feed_forward, positions, clamped } = tower;
    let deviation = ((PATCH * PATCH * CHANNELS) as f32).sqrt().recip();
    let patches = [PATCH, PATCH, CHANNELS, width];
    list.add("v.patch_embd.weight".into(), &patches, Role::Vision, Fill::Normal { deviation });
    position_tables(width, positions, list);
    for block in 0..blocks {
        let name = |part: &str| format!("v.blk.{block}.{part}");
        for norm in ["ln1", "ln2", "attn_post_norm", "ffn_post_norm"] {
            list.norm(name(&format!("{norm}.weight")), width, 1.0);
        }
        let head = width / heads;
        list.norm(name("attn_q_norm.weight"), head, 1.0);
        list.norm(name("attn_k_norm.weight"), head, SCORE_DEVIATION / (head as f32).sqrt());
        for (part, from, to) in [
            ("attn_q", width, width),
            ("attn_k", width, width),
            ("attn_v", width, width),
            ("attn_out", width, width),
            ("ffn_gate", width, feed_forward),
            ("ffn_up", width, feed_forward),
            ("ffn_down", feed_forward, width),
        ] {
            list.matrix(name(&format!("{part}.weight")), &[from, to], Role::Vision);
            if clamped {
                clamps(&name(part), list);
            }
        }
    }
    if !clamped {
        // What is standardised was multiplied by √width just before.
        let size = (width as f32).sqrt();
        list.add("v.std_bias".into(), &[width], Role::Exact, Fill::Normal { deviation: 0.2 * size });
        list.norm("v.std_scale".into(), width, size.recip());
    }
    list.matrix("mm.input_projection.weight".into(), &[width, text_width], Role::Vision);
}

/// Where a patch is: one table for columns and one for rows.
fn position_tables(width: u64, positions: u64, list: &mut TensorList) {
    let table = Fill::Normal { deviation: 0.5 };
    list.add("v.position_embd.weight".into(), &[width, positions, 2], Role::Exact, table);
}

/// Vision without a tower: a patch of 48 by 48 pixels is a soft token.
fn direct_vision(positions: u64, width: u64, list: &mut TensorList) {
    let side = PATCH * POOLED;
    let inputs = side * side * CHANNELS;
    list.matrix("v.patch_embd.weight".into(), &[inputs, width], Role::Vision);
    let bias = Fill::Normal { deviation: 0.1 };
    list.add("v.patch_embd.bias".into(), &[width], Role::Exact, bias.clone());
    for (norm, width) in [(1, inputs), (2, width), (3, width)] {
        list.norm(format!("v.patch_norm.{norm}.weight"), width, 1.0);
        list.add(format!("v.patch_norm.{norm}.bias"), &[width], Role::Exact, bias.clone());
    }
    position_tables(width, positions, list);
    list.matrix("mm.input_projection.weight".into(), &[width, width], Role::Vision);
}

/// What comes before and after the blocks of the audio tower.
fn audio_ends(tower: &AudioTower, text_width: u64, list: &mut TensorList) {
    let &AudioTower { width, output, .. } = tower;
    let mut channels = 1;
    for (index, convolved) in CONVOLVED.into_iter().enumerate() {
        let deviation = ((9 * channels) as f32).sqrt().recip();
        let kernel = [3, 3, channels, convolved];
        list.add(format!("a.conv1d.{index}.weight"), &kernel, Role::Exact, Fill::Normal { deviation });
        list.norm(format!("a.conv1d.{index}.norm.weight"), convolved, 1.0);
        channels = convolved;
    }
    list.matrix("a.pre_encode.out.weight".into(), &[channels * BANDS_LEFT, width], Role::Audio);
    list.matrix("mm.a.fc.weight".into(), &[width, output], Role::Vision);
    list.add("mm.a.fc.bias".into(), &[output], Role::Exact, Fill::Normal { deviation: 0.3 });
    list.matrix("mm.a.input_projection.weight".into(), &[output, text_width], Role::Vision);
}

fn audio_block(tower: &AudioTower, block: u32, list: &mut TensorList) {
    let &AudioTower { width, heads, .. } = tower;
    let name = |part: &str| format!("a.blk.{block}.{part}");
    for norm in [
        "ffn_norm",
        "ffn_post_norm",
        "ffn_norm_1",
        "ffn_post_norm_1",
        "ln1",
        "ln2",
        "conv_norm",
        "norm_conv",
        "layer_pre_norm",
    ] {
        list.norm(name(&format!("{norm}.weight")), width, 1.0);
    }
    list.norm(name("per_dim_scale.weight"), width / heads, 1.0);
    let deviation = (KERNEL as f32).sqrt().recip();
    list.add(name("conv_dw.weight"), &[KERNEL, width], Role::Exact, Fill::Normal { deviation });
    list.matrix(name("linear_pos.weight"), &[width, width], Role::Audio);
    for (part, from, to) in [
        ("attn_q", width, width),
        ("attn_k", width, width),
        ("attn_v", width, width),
        ("attn_out", width, width),
        ("conv_pw1", width, 2 * width),
        ("conv_pw2", width, width),
        ("ffn_up", width, 4 * width),
        ("ffn_down", 4 * width, width),
        ("ffn_up_1", width, 4 * width),
        ("ffn_down_1", 4 * width, width),
    ] {
        list.matrix(name(&format!("{part}.weight")), &[from, to], Role::Audio);
        clamps(&name(part), list);
    }
}

/// The bounds of what goes into a linear layer and of what comes out.
fn clamps(linear: &str, list: &mut TensorList) {
    let [near, far] = CLAMP;
    for (bound, fill) in [
        ("input_min", Fill::Between(-far, -near)),
        ("input_max", Fill::Between(near, far)),
        ("output_min", Fill::Between(-far, -near)),
        ("output_max", Fill::Between(near, far)),
    ] {
        list.add(format!("{linear}.{bound}"), &[1], Role::Exact, fill);
    }
}
