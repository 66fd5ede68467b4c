//! What the configuration says of images and sound.

use rullama_gemma::{AudioKeys, VisionKeys};
use serde::Deserialize;
use serde_json::Value;

use super::{ACTIVATION, parse, positive, within};
use crate::{ConvertError, files::Folder};

/// How images become soft tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Vision {
    Tower { keys: VisionKeys, head_width: u32, positions: u32, clipped: bool, standardised: bool },
    Direct { keys: VisionKeys, positions: u32 },
}

/// How sound becomes soft tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Audio {
    Tower { keys: AudioKeys, channels: [u32; 2], output: u32, clipped: bool },
    Direct { keys: AudioKeys },
}

#[derive(Debug, Deserialize)]
#[serde(default)]
struct VisionConfig {
    hidden_size: u32,
    intermediate_size: u32,
    num_hidden_layers: u32,
    num_attention_heads: u32,
    num_key_value_heads: Option<u32>,
    head_dim: u32,
    hidden_activation: String,
    rms_norm_eps: f32,
    patch_size: u32,
    pooling_kernel_size: u32,
    position_embedding_size: u32,
    use_clipped_linears: bool,
    standardize: bool,
}

impl Default for VisionConfig {
    fn default() -> Self {
        Self {
            hidden_size: 768,
            intermediate_size: 3072,
            num_hidden_layers: 16,
            num_attention_heads: 12,
            num_key_value_heads: None,
            head_dim: 64,
            hidden_activation: ACTIVATION.to_owned(),
            rms_norm_eps: 1e-6,
            patch_size: 16,
            pooling_kernel_size: 3,
            position_embedding_size: 10_240,
            use_clipped_linears: false,
            standardize: false,
        }
    }
}

pub(super) fn vision(folder: Folder<'_>, value: Value) -> Result<Vision, ConvertError> {
    let config: VisionConfig = parse(folder, value)?;
    let VisionConfig { hidden_size: width, num_attention_heads: heads, head_dim, .. } = config;
    within("vision_config.hidden_size", width, 1..=65_536, "1 to 65536 columns")?;
    within("vision_config.num_hidden_layers", config.num_hidden_layers, 1..=1024, "1 to 1024 blocks")?;
    within("vision_config.intermediate_size", config.intermediate_size, 1..=1 << 20, "1 to 1048576 columns")?;
    patches(config.patch_size, config.pooling_kernel_size, config.position_embedding_size)?;
    positive("vision_config.rms_norm_eps", config.rms_norm_eps)?;
    // No key of the file says how wide a head is.
    if heads == 0 || heads.checked_mul(head_dim) != Some(width) {
        let (found, expected) = (head_dim.to_string(), "`hidden_size` divided by `num_attention_heads`");
        return Err(ConvertError::Config { key: "vision_config.head_dim", found, expected });
    }
    let kv_heads = config.num_key_value_heads.unwrap_or(heads);
    within("vision_config.num_key_value_heads", kv_heads, heads..=heads, "as many as there are query heads")?;
    if config.hidden_activation != ACTIVATION {
        let found = format!("`{}`", config.hidden_activation);
        let key = "vision_config.hidden_activation";
        return Err(ConvertError::Config { key, found, expected: "`gelu_pytorch_tanh`" });
    }
    let keys = VisionKeys {
        blocks: config.num_hidden_layers,
        width,
        heads,
        feed_forward_width: config.intermediate_size,
        patch: config.patch_size,
        pooled: config.pooling_kernel_size,
        eps: config.rms_norm_eps,
    };
    let positions = config.position_embedding_size;
    let (clipped, standardised) = (config.use_clipped_linears, config.standardize);
    Ok(Vision::Tower { keys, head_width: head_dim, positions, clipped, standardised })
}

#[derive(Debug, Deserialize)]
#[serde(default)]
struct DirectVisionConfig {
    patch_size: u32,
    pooling_kernel_size: u32,
    mm_embed_dim: u32,
    mm_posemb_size: u32,
    rms_norm_eps: f32,
}

impl Default for DirectVisionConfig {
    fn default() -> Self {
        Self {
            patch_size: 16,
            pooling_kernel_size: 3,
            mm_embed_dim: 3840,
            mm_posemb_size: 1120,
            rms_norm_eps: 1e-6,
        }
    }
}

pub(super) fn direct_vision(
    folder: Folder<'_>,
    value: Value,
    text_width: u32,
) -> Result<Vision, ConvertError> {
    let config: DirectVisionConfig = parse(folder, value)?;
    patches(config.patch_size, config.pooling_kernel_size, config.mm_posemb_size)?;
    positive("vision_config.rms_norm_eps", config.rms_norm_eps)?;
    within(
        "vision_config.mm_embed_dim",
        config.mm_embed_dim,
        text_width..=text_width,
        "as wide as the decoder",
    )?;
    let keys = VisionKeys {
        blocks: 0,
        width: config.mm_embed_dim,
        heads: 0,
        feed_forward_width: 0,
        patch: config.patch_size,
        pooled: config.pooling_kernel_size,
        eps: config.rms_norm_eps,
    };
    Ok(Vision::Direct { keys, positions: config.mm_posemb_size })
}

fn patches(side: u32, pooled: u32, positions: u32) -> Result<(), ConvertError> {
    within("vision_config.patch_size", side, 1..=256, "1 to 256 pixels")?;
    within("vision_config.pooling_kernel_size", pooled, 1..=16, "1 to 16 patches")?;
    within("vision_config.position_embedding_size", positions, 1..=1 << 20, "1 to 1048576 positions")
}

#[derive(Debug, Deserialize)]
#[serde(default)]
struct AudioConfig {
    hidden_size: u32,
    num_hidden_layers: u32,
    num_attention_heads: u32,
    subsampling_conv_channels: [u32; 2],
    conv_kernel_size: u32,
    output_proj_dims: u32,
    use_clipped_linears: bool,
    rms_norm_eps: f32,
    // What readers of the file take for granted.
    hidden_act: String,
    residual_weight: f32,
    attention_chunk_size: u32,
    attention_context_left: u32,
    attention_context_right: u32,
    attention_logit_cap: f32,
}

impl Default for AudioConfig {
    fn default() -> Self {
        Self {
            hidden_size: 1024,
            num_hidden_layers: 12,
            num_attention_heads: 8,
            subsampling_conv_channels: [128, 32],
            conv_kernel_size: 5,
            output_proj_dims: 1536,
            use_clipped_linears: true,
            rms_norm_eps: 1e-6,
            hidden_act: "silu".to_owned(),
            residual_weight: 0.5,
            attention_chunk_size: 12,
            attention_context_left: 13,
            attention_context_right: 0,
            attention_logit_cap: 50.0,
        }
    }
}

pub(super) fn audio(folder: Folder<'_>, value: Value) -> Result<Audio, ConvertError> {
    let config: AudioConfig = parse(folder, value)?;
    let AudioConfig { hidden_size: width, num_attention_heads: heads, .. } = config;
    within("audio_config.hidden_size", width, 1..=65_536, "1 to 65536 columns")?;
    within("audio_config.num_hidden_layers", config.num_hidden_layers, 1..=1024, "1 to 1024 blocks")?;
    within("audio_config.conv_kernel_size", config.conv_kernel_size, 1..=1024, "1 to 1024 steps")?;
    within("audio_config.output_proj_dims", config.output_proj_dims, 1..=65_536, "1 to 65536 columns")?;
    for channels in config.subsampling_conv_channels {
        within("audio_config.subsampling_conv_channels", channels, 1..=65_536, "1 to 65536 channels")?;
    }
    positive("audio_config.rms_norm_eps", config.rms_norm_eps)?;
    if heads == 0 || !width.is_multiple_of(heads) {
        let (found, expected) = (heads.to_string(), "a divisor of `hidden_size`");
        return Err(ConvertError::Config { key: "audio_config.num_attention_heads", found, expected });
    }
    let usual = AudioConfig::default();
    let same = config.hidden_act == usual.hidden_act
        && config.residual_weight == usual.residual_weight
        && config.attention_chunk_size == usual.attention_chunk_size
        && config.attention_context_left == usual.attention_context_left
        && config.attention_context_right == usual.attention_context_right
        && config.attention_logit_cap == usual.attention_logit_cap;
    if !same {
        return Err(ConvertError::Config {
            key: "audio_config",
            found: "of an unusual tower".to_owned(),
            expected: "silu, chunks of 12 with a context of 13 and 0, a cap of 50 and half residuals",
        });
    }
    let keys = AudioKeys {
        blocks: config.num_hidden_layers,
        width,
        heads,
        kernel: config.conv_kernel_size,
        eps: config.rms_norm_eps,
    };
    Ok(Audio::Tower {
        keys,
        channels: config.subsampling_conv_channels,
        output: config.output_proj_dims,
        clipped: config.use_clipped_linears,
    })
}

#[derive(Debug, Deserialize)]
#[serde(default)]
struct DirectAudioConfig {
    audio_embed_dim: u32,
    rms_norm_eps: f32,
}

impl Default for DirectAudioConfig {
    fn default() -> Self {
        Self { audio_embed_dim: 640, rms_norm_eps: 1e-6 }
    }
}

pub(super) fn direct_audio(folder: Folder<'_>, value: Value) -> Result<Audio, ConvertError> {
    let config: DirectAudioConfig = parse(folder, value)?;
    within("audio_config.audio_embed_dim", config.audio_embed_dim, 1..=65_536, "1 to 65536 samples")?;
    positive("audio_config.rms_norm_eps", config.rms_norm_eps)?;
    let keys =
        AudioKeys { blocks: 0, width: config.audio_embed_dim, heads: 0, kernel: 0, eps: config.rms_norm_eps };
    Ok(Audio::Direct { keys })
}
