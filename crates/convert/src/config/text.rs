//! The decoder's part of the configuration.

use std::collections::BTreeMap;

use rullama_gemma::{Config, ExpertConfig, KvSource, LayerConfig};
use serde::Deserialize;

use super::{ACTIVATION, positive, within};
use crate::ConvertError;

#[derive(Debug, Deserialize)]
#[serde(default)]
pub(super) struct TextConfig {
    vocab_size: u32,
    pub(super) hidden_size: u32,
    intermediate_size: u32,
    num_hidden_layers: u32,
    num_attention_heads: u32,
    num_key_value_heads: u32,
    head_dim: u32,
    global_head_dim: Option<u32>,
    num_global_key_value_heads: Option<u32>,
    per_layer_config: Option<BTreeMap<String, LayerOverrides>>,
    hidden_activation: String,
    max_position_embeddings: u32,
    rms_norm_eps: f32,
    rope_parameters: Option<RopeParameters>,
    sliding_window: u32,
    layer_types: Option<Vec<String>>,
    final_logit_softcapping: Option<f32>,
    hidden_size_per_layer_input: Option<u32>,
    pub(super) attention_k_eq_v: bool,
    num_kv_shared_layers: u32,
    enable_moe_block: bool,
    use_double_wide_mlp: bool,
    num_experts: Option<u32>,
    top_k_experts: Option<u32>,
    moe_intermediate_size: Option<u32>,
}

impl Default for TextConfig {
    fn default() -> Self {
        Self {
            vocab_size: 262_144,
            hidden_size: 2304,
            intermediate_size: 9216,
            num_hidden_layers: 30,
            num_attention_heads: 8,
            num_key_value_heads: 4,
            head_dim: 256,
            global_head_dim: None,
            num_global_key_value_heads: None,
            per_layer_config: None,
            hidden_activation: ACTIVATION.to_owned(),
            max_position_embeddings: 131_072,
            rms_norm_eps: 1e-6,
            rope_parameters: None,
            sliding_window: 512,
            layer_types: None,
            final_logit_softcapping: None,
            hidden_size_per_layer_input: Some(256),
            attention_k_eq_v: false,
            num_kv_shared_layers: 0,
            enable_moe_block: false,
            use_double_wide_mlp: false,
            num_experts: None,
            top_k_experts: None,
            moe_intermediate_size: None,
        }
    }
}

/// What one layer has that others have not.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LayerOverrides {
    head_dim: Option<u32>,
    num_key_value_heads: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RopeParameters {
    full_attention: Rope,
    sliding_attention: Rope,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Rope {
    rope_type: Option<String>,
    rope_theta: Option<f32>,
    partial_rotary_factor: Option<f32>,
}

/// Width of a global layer's heads, where nothing else is said.
const GLOBAL_HEAD_WIDTH: u32 = 512;

impl TextConfig {
    /// For the encoder-free model, which has no such parts and does not mention them.
    pub(super) fn without_extras(&mut self) {
        (self.hidden_size_per_layer_input, self.enable_moe_block) = (None, false);
    }

    /// The decoder as the file's metadata describe it.
    pub(super) fn described(&self) -> Result<Config, ConvertError> {
        within("num_hidden_layers", self.num_hidden_layers, 1..=1024, "1 to 1024 layers")?;
        within("hidden_size", self.hidden_size, 1..=65_536, "1 to 65536 columns")?;
        within("vocab_size", self.vocab_size, 1..=1 << 21, "1 to 2097152 tokens")?;
        within("intermediate_size", self.intermediate_size, 1..=1 << 19, "1 to 524288 columns")?;
        within("sliding_window", self.sliding_window, 1..=1 << 30, "at least 1")?;
        within("max_position_embeddings", self.max_position_embeddings, 1..=u32::MAX, "at least 1")?;
        let per_layer = self.hidden_size_per_layer_input.unwrap_or(0);
        within("hidden_size_per_layer_input", per_layer, 0..=65_536, "at most 65536 columns")?;
        within(
            "num_kv_shared_layers",
            self.num_kv_shared_layers,
            0..=self.num_hidden_layers - 1,
            "fewer than all layers",
        )?;
        positive("rms_norm_eps", self.rms_norm_eps)?;
        if self.hidden_activation != ACTIVATION {
            let found = format!("`{}`", self.hidden_activation);
            return Err(ConvertError::Config {
                key: "hidden_activation",
                found,
                expected: "`gelu_pytorch_tanh`",
            });
        }
        Ok(Config {
            width: self.hidden_size,
            vocabulary: self.vocab_size,
            context_length: self.max_position_embeddings,
            eps: self.rms_norm_eps,
            per_layer_width: Some(per_layer).filter(|&width| width > 0),
            soft_cap: match self.final_logit_softcapping {
                Some(cap) if cap != 0.0 => Some(positive("final_logit_softcapping", cap)?),
                _ => None,
            },
            experts: self.experts()?,
            layers: self.layers()?,
        })
    }

    fn experts(&self) -> Result<Option<ExpertConfig>, ConvertError> {
        if !self.enable_moe_block {
            return Ok(None);
        }
        let count = self.num_experts.unwrap_or(0);
        let used = self.top_k_experts.unwrap_or(0);
        let width = self.moe_intermediate_size.unwrap_or(0);
        within("num_experts", count, 1..=65_536, "1 to 65536 experts")?;
        within("top_k_experts", used, 1..=count, "between 1 and `num_experts`")?;
        within("moe_intermediate_size", width, 1..=1 << 19, "1 to 524288 columns")?;
        Ok(Some(ExpertConfig { count, used, width }))
    }

    fn layers(&self) -> Result<Vec<LayerConfig>, ConvertError> {
        let global = self.globals()?;
        let owners = (self.num_hidden_layers - self.num_kv_shared_layers) as usize;
        let bases = self.rope_bases()?;
        let mut layers = Vec::new();
        // Of all layers of a kind, the file has one width.
        let mut widths: [Option<u32>; 2] = [None; 2];
        for (index, &is_global) in global.iter().enumerate() {
            let (head_width, kv_heads) = self.heads(index, is_global);
            let kind_width = *widths[usize::from(is_global)].get_or_insert(head_width);
            if head_width != kind_width {
                let expected = "the same for all global and for all sliding layers";
                return Err(ConvertError::Config {
                    key: "head_dim",
                    found: head_width.to_string(),
                    expected,
                });
            }
            let even = head_width.is_multiple_of(2) && (2..=65_536).contains(&head_width);
            let heads = self.num_attention_heads;
            if !even || heads == 0 || u64::from(heads) * u64::from(head_width) > 1 << 24 {
                let expected = "an even width, of which all heads have at most 16777216 columns";
                return Err(ConvertError::Config {
                    key: "head_dim",
                    found: head_width.to_string(),
                    expected,
                });
            }
            if kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
                let (found, expected) = (kv_heads.to_string(), "a divisor of `num_attention_heads`");
                return Err(ConvertError::Config { key: "num_key_value_heads", found, expected });
            }
            let kv = if index < owners {
                KvSource::Own
            } else {
                let donor = (0..owners).rev().find(|&donor| global[donor] == is_global);
                let Some(donor) = donor else {
                    let found = self.num_kv_shared_layers.to_string();
                    let expected = "so few that an earlier layer of each kind has keys and values";
                    return Err(ConvertError::Config { key: "num_kv_shared_layers", found, expected });
                };
                KvSource::Donor(donor as u32)
            };
            let wide = self.use_double_wide_mlp && kv != KvSource::Own;
            layers.push(LayerConfig {
                window: (!is_global).then_some(self.sliding_window),
                heads,
                kv_heads,
                head_width,
                rope_base: bases[usize::from(is_global)],
                feed_forward_width: if wide { 2 * self.intermediate_size } else { self.intermediate_size },
                kv,
            });
        }
        Ok(layers)
    }

    /// Which layers look back to the beginning.
    fn globals(&self) -> Result<Vec<bool>, ConvertError> {
        let layers = self.num_hidden_layers as usize;
        let Some(types) = &self.layer_types else {
            return Ok((1..=layers).map(|number| number % 6 == 0 || number == layers).collect());
        };
        if types.len() != layers {
            let (found, expected) = (format!("a list of {}", types.len()), "an entry for each layer");
            return Err(ConvertError::Config { key: "layer_types", found, expected });
        }
        types
            .iter()
            .map(|name| match name.as_str() {
                "full_attention" => Ok(true),
                "sliding_attention" => Ok(false),
                other => Err(ConvertError::Config {
                    key: "layer_types",
                    found: format!("`{other}`"),
                    expected: "`full_attention` or `sliding_attention`",
                }),
            })
            .collect()
    }

    /// Width and number of a layer's key heads.
    fn heads(&self, layer: usize, global: bool) -> (u32, u32) {
        let special = self.per_layer_config.as_ref().and_then(|layers| layers.get(&layer.to_string()));
        let width = special.and_then(|special| special.head_dim);
        let heads = special.and_then(|special| special.num_key_value_heads);
        // The older way of saying the same, which only global layers have.
        let usual_width =
            if global { self.global_head_dim.unwrap_or(GLOBAL_HEAD_WIDTH) } else { self.head_dim };
        let usual_heads = self.num_global_key_value_heads.filter(|_| global && self.attention_k_eq_v);
        (width.unwrap_or(usual_width), heads.or(usual_heads).unwrap_or(self.num_key_value_heads))
    }

    /// The bases of rotary frequencies: sliding, global.
    fn rope_bases(&self) -> Result<[f32; 2], ConvertError> {
        let rope = self.rope_parameters.as_ref();
        let base = |rope: Option<&Rope>, default: f32| {
            positive("rope_theta", rope.and_then(|rope| rope.rope_theta).unwrap_or(default))
        };
        if let Some(sliding) = rope.map(|rope| &rope.sliding_attention) {
            let kind = sliding.rope_type.as_deref().unwrap_or("default");
            if kind != "default" || sliding.partial_rotary_factor.unwrap_or(1.0) != 1.0 {
                let (found, expected) = (format!("`{kind}`"), "`default` for sliding layers, of all columns");
                return Err(ConvertError::Config { key: "rope_type", found, expected });
            }
        }
        Ok([
            base(rope.map(|rope| &rope.sliding_attention), 1e4)?,
            base(rope.map(|rope| &rope.full_attention), 1e6)?,
        ])
    }

    /// How many pairs of a global layer's columns are rotated, and how many are not.
    pub(super) fn rotated(&self) -> Result<(u32, u32), ConvertError> {
        let global = self.globals()?.iter().rposition(|&global| global);
        let Some(layer) = global else { return Ok((0, 0)) };
        let (width, _) = self.heads(layer, true);
        let rope = self.rope_parameters.as_ref().map(|rope| &rope.full_attention);
        let kind = rope.and_then(|rope| rope.rope_type.as_deref()).unwrap_or("proportional");
        if kind != "proportional" {
            let (found, expected) = (format!("`{kind}`"), "`proportional` for global layers");
            return Err(ConvertError::Config { key: "rope_type", found, expected });
        }
        let share = rope.and_then(|rope| rope.partial_rotary_factor).unwrap_or(0.25);
        if !(0.0..=1.0).contains(&share) {
            let (found, expected) = (share.to_string(), "between 0 and 1");
            return Err(ConvertError::Config { key: "partial_rotary_factor", found, expected });
        }
        let pairs = width / 2;
        let rotated = (f64::from(width) * f64::from(share) / 2.0) as u32;
        Ok((rotated, pairs - rotated))
    }
}
