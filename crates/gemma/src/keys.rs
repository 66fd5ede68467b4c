//! The way back: a model's description as the metadata of a file, for those that write files.
//!
//! Keys, types and order are those of llama.cpp's converter for the decoder and of Ollama's for the towers.

use rullama_gguf::{WriteError, WriteValue, Writer};

use crate::{Config, KvSource, LayerConfig};

/// What the metadata says of how images become soft tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VisionKeys {
    /// Blocks of the tower; none where patches are projected directly.
    pub blocks: u32,
    /// Columns of the tower.
    pub width: u32,
    /// Attention heads of a block.
    pub heads: u32,
    /// Hidden columns of a block's feed-forward.
    pub feed_forward_width: u32,
    /// The side of a patch, in pixels.
    pub patch: u32,
    /// How many patches, along each axis, become one soft token.
    pub pooled: u32,
    /// Keeps norms away from zero.
    pub eps: f32,
}

/// What the metadata says of how sound becomes soft tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AudioKeys {
    /// Blocks of the tower; none where samples are projected directly.
    pub blocks: u32,
    /// Columns of the tower; without one, samples of a frame.
    pub width: u32,
    /// Attention heads of a block.
    pub heads: u32,
    /// Steps of time that a block's convolution sees.
    pub kernel: u32,
    /// Keeps norms away from zero.
    pub eps: f32,
}

/// How many channels a picture has.
const CHANNELS: u32 = 3;

/// A conformer's feed-forward is this many times as wide as the tower.
const AUDIO_FEED_FORWARD: u32 = 4;

impl Config {
    /// Writes what [`Config::read`] reads, except the vocabulary, which the tokenizer's keys say.
    ///
    /// # Errors
    ///
    /// If `header` has one of these keys.
    pub fn write(&self, header: &mut Writer) -> Result<(), WriteError> {
        let mut keys = Keys { header, section: "" };
        let first = |wanted: bool| self.layers.iter().find(|layer| layer.window.is_some() == wanted);
        let (sliding, global) = (first(true), first(false));

        keys.set("block_count", self.layers.len() as u32)?;
        keys.set("context_length", self.context_length)?;
        keys.set("embedding_length", self.width)?;
        keys.per_layer("feed_forward_length", &self.layers, |layer| layer.feed_forward_width)?;
        keys.per_layer("attention.head_count", &self.layers, |layer| layer.heads)?;
        keys.per_layer("attention.head_count_kv", &self.layers, |layer| layer.kv_heads)?;
        if let Some(layer) = global {
            keys.set("rope.freq_base", layer.rope_base)?;
        }
        if let Some(layer) = sliding {
            keys.set("rope.freq_base_swa", layer.rope_base)?;
        }
        keys.set("attention.layer_norm_rms_epsilon", self.eps)?;
        if let Some(layer) = global {
            keys.set("attention.key_length", layer.head_width)?;
            keys.set("attention.value_length", layer.head_width)?;
        }
        if let Some(cap) = self.soft_cap {
            keys.set("final_logit_softcapping", cap)?;
        }
        if let Some(window) = sliding.and_then(|layer| layer.window) {
            keys.set("attention.sliding_window", window)?;
        }
        let borrowers = self.layers.iter().filter(|layer| layer.kv != KvSource::Own).count();
        keys.set("attention.shared_kv_layers", borrowers as u32)?;
        keys.set("embedding_length_per_layer_input", self.per_layer_width.unwrap_or(0))?;
        let pattern: Vec<bool> = self.layers.iter().map(|layer| layer.window.is_some()).collect();
        keys.set("attention.sliding_window_pattern", &pattern[..])?;
        if let Some(layer) = sliding {
            keys.set("attention.key_length_swa", layer.head_width)?;
            keys.set("attention.value_length_swa", layer.head_width)?;
        }
        // Not the columns that are rotated: of a global layer's, the factors of its frequencies say which.
        if let Some(layer) = global {
            keys.set("rope.dimension_count", layer.head_width)?;
        }
        if let Some(layer) = sliding {
            keys.set("rope.dimension_count_swa", layer.head_width)?;
        }
        if let Some(experts) = self.experts {
            keys.set("expert_count", experts.count)?;
            keys.set("expert_used_count", experts.used)?;
            keys.set("expert_feed_forward_length", experts.width)?;
        }
        Ok(())
    }
}

impl VisionKeys {
    /// Writes the keys of a file that holds its vision tower.
    ///
    /// # Errors
    ///
    /// If `header` has one of these keys.
    pub fn write(&self, header: &mut Writer) -> Result<(), WriteError> {
        let mut keys = Keys { header, section: "vision." };
        keys.set("block_count", self.blocks)?;
        keys.set("embedding_length", self.width)?;
        keys.set("attention.head_count", self.heads)?;
        keys.set("feed_forward_length", self.feed_forward_width)?;
        keys.set("patch_size", self.patch)?;
        keys.set("num_channels", CHANNELS)?;
        keys.set("projector.scale_factor", self.pooled)?;
        keys.set("attention.layer_norm_epsilon", self.eps)
    }
}

impl AudioKeys {
    /// Writes the keys of a file that holds its audio tower.
    ///
    /// # Errors
    ///
    /// If `header` has one of these keys.
    pub fn write(&self, header: &mut Writer) -> Result<(), WriteError> {
        let mut keys = Keys { header, section: "audio." };
        keys.set("block_count", self.blocks)?;
        keys.set("embedding_length", self.width)?;
        let feed_forward = if self.blocks == 0 { 0 } else { AUDIO_FEED_FORWARD.saturating_mul(self.width) };
        keys.set("feed_forward_length", feed_forward)?;
        keys.set("attention.head_count", self.heads)?;
        keys.set("attention.layer_norm_epsilon", self.eps)?;
        if self.blocks > 0 {
            keys.set("conv_kernel_size", self.kernel)?;
        }
        Ok(())
    }
}

/// Keys of the architecture, all below one section.
struct Keys<'w> {
    header: &'w mut Writer,
    section: &'static str,
}

impl Keys<'_> {
    fn set(&mut self, key: &str, value: impl WriteValue) -> Result<(), WriteError> {
        self.header.set(&format!("gemma4.{}{key}", self.section), value)
    }

    /// A value for each layer, or the one value of all.
    fn per_layer(
        &mut self,
        key: &str,
        layers: &[LayerConfig],
        value: impl Fn(&LayerConfig) -> u32,
    ) -> Result<(), WriteError> {
        let values: Vec<i32> = layers.iter().map(|layer| value(layer) as i32).collect();
        match values[..] {
            [first, ref others @ ..] if others.iter().all(|&other| other == first) => {
                self.set(key, first as u32)
            }
            _ => self.set(key, &values[..]),
        }
    }
}
