//! The metadata of a file: the keys that llama.cpp's converter writes, and those of Ollama for towers.

use rullama_gguf::{WriteError, WriteValue, Writer};

use crate::{
    Preset, SynthOptions,
    shape::{Audio, Text, Vision},
    towers::{CHANNELS, KERNEL, PATCH, POOLED, SAMPLES},
    vocabulary::Vocabulary,
};

const EPSILON: f32 = 1e-6;

/// Turns as Gemma 4 expects them, without tools and thoughts.
const CHAT_TEMPLATE: &str = "{{- bos_token -}}\
    {%- for message in messages -%}\
    {{- '<|turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '\\n' \
    + message['content'] + '<turn|>\\n' -}}\
    {%- endfor -%}\
    {%- if add_generation_prompt -%}{{- '<|turn>model\\n' -}}{%- endif -%}";

/// Sets all keys.
pub(crate) fn set(
    header: &mut Writer,
    preset: Preset,
    options: &SynthOptions,
    vocabulary: &Vocabulary,
) -> Result<(), WriteError> {
    header.set("general.architecture", "gemma4")?;
    header.set("general.type", "model")?;
    let name = format!("Synthetic Gemma 4 {preset}, seed {}", options.seed);
    header.set("general.name", name.as_str())?;
    header.set("general.description", "Random weights in the structure of a Gemma 4 model")?;
    header.set("general.sampling.temp", 1.0f32)?;
    header.set("general.sampling.top_k", 64i32)?;
    header.set("general.sampling.top_p", 0.95f32)?;
    header.set("general.file_type", options.mix.file_type())?;
    header.set("general.quantization_version", 2u32)?;

    let mut keys = Section { header, prefix: "gemma4" };
    text(&mut keys, &preset.shape.text)?;
    if options.towers {
        vision(&mut keys, &preset.shape.vision, preset.shape.text.width)?;
        if let Some(tower) = &preset.shape.audio {
            audio(&mut keys, tower)?;
        }
    }
    // The one model without a tower for images is also the one whose file names tokens it must not write.
    let suppresses = matches!(preset.shape.vision, Vision::Direct { .. });
    tokenizer(header, vocabulary, suppresses)
}

/// Keys with a common prefix.
struct Section<'w> {
    header: &'w mut Writer,
    prefix: &'static str,
}

impl Section<'_> {
    fn set(&mut self, key: &str, value: impl WriteValue) -> Result<(), WriteError> {
        self.header.set(&format!("{}.{key}", self.prefix), value)
    }

    /// Sets a count; those that do not fit a `u32` are in no shape.
    fn count(&mut self, key: &str, count: u64) -> Result<(), WriteError> {
        self.set(key, count as u32)
    }

    /// A value for each layer, or the one value of all.
    fn per_layer(&mut self, key: &str, values: &[i32], differ: bool) -> Result<(), WriteError> {
        match values {
            [first, ..] if !differ => self.set(key, *first as u32),
            _ => self.set(key, values),
        }
    }
}

fn text(keys: &mut Section<'_>, text: &Text) -> Result<(), WriteError> {
    let layers = 0..text.layers;
    keys.set("block_count", text.layers)?;
    keys.set("context_length", text.context)?;
    keys.count("embedding_length", text.width)?;
    let widths: Vec<i32> = layers.clone().map(|layer| text.feed_forward(layer) as i32).collect();
    keys.per_layer("feed_forward_length", &widths, text.wide_tail)?;
    keys.count("attention.head_count", text.heads)?;
    let heads: Vec<i32> = layers.clone().map(|layer| text.key_heads(layer).count as i32).collect();
    keys.per_layer("attention.head_count_kv", &heads, text.sliding.count != text.global.count)?;
    keys.set("rope.freq_base", 1e6f32)?;
    keys.set("rope.freq_base_swa", 1e4f32)?;
    keys.set("attention.layer_norm_rms_epsilon", EPSILON)?;
    keys.count("attention.key_length", text.global.width)?;
    keys.count("attention.value_length", text.global.width)?;
    keys.set("final_logit_softcapping", 30.0f32)?;
    keys.set("attention.sliding_window", text.window)?;
    keys.set("attention.shared_kv_layers", text.borrowing)?;
    keys.count("embedding_length_per_layer_input", text.per_layer)?;
    let sliding: Vec<bool> = layers.map(|layer| !text.is_global(layer)).collect();
    keys.set("attention.sliding_window_pattern", &sliding[..])?;
    keys.count("attention.key_length_swa", text.sliding.width)?;
    keys.count("attention.value_length_swa", text.sliding.width)?;
    keys.count("rope.dimension_count", text.global.width)?;
    keys.count("rope.dimension_count_swa", text.sliding.width)?;
    if let Some(experts) = text.experts {
        keys.count("expert_count", experts.count)?;
        keys.set("expert_used_count", experts.used)?;
        keys.count("expert_feed_forward_length", experts.width)?;
    }
    Ok(())
}

fn vision(keys: &mut Section<'_>, vision: &Vision, text_width: u64) -> Result<(), WriteError> {
    let (blocks, width, heads, inner) = match vision {
        Vision::Tower(tower) => (tower.blocks, tower.width, tower.heads, tower.feed_forward),
        Vision::Direct { .. } => (0, text_width, 0, 0),
    };
    keys.set("vision.block_count", blocks)?;
    keys.count("vision.embedding_length", width)?;
    keys.count("vision.attention.head_count", heads)?;
    keys.count("vision.feed_forward_length", inner)?;
    keys.count("vision.patch_size", PATCH)?;
    keys.count("vision.num_channels", CHANNELS)?;
    keys.count("vision.projector.scale_factor", POOLED)?;
    keys.set("vision.attention.layer_norm_epsilon", EPSILON)
}

fn audio(keys: &mut Section<'_>, audio: &Audio) -> Result<(), WriteError> {
    let (blocks, width, heads) = match audio {
        Audio::Tower(tower) => (tower.blocks, tower.width, tower.heads),
        Audio::Direct => (0, SAMPLES, 0),
    };
    keys.set("audio.block_count", blocks)?;
    keys.count("audio.embedding_length", width)?;
    keys.count("audio.feed_forward_length", if blocks == 0 { 0 } else { 4 * width })?;
    keys.count("audio.attention.head_count", heads)?;
    keys.set("audio.attention.layer_norm_epsilon", EPSILON)?;
    if blocks > 0 {
        keys.count("audio.conv_kernel_size", KERNEL)?;
    }
    Ok(())
}

/// `suppresses`: whether the file says that the ends of media must not be written.
fn tokenizer(header: &mut Writer, vocabulary: &Vocabulary, suppresses: bool) -> Result<(), WriteError> {
    let mut keys = Section { header, prefix: "tokenizer.ggml" };
    keys.set("model", "gemma4")?;
    keys.set("tokens", &borrowed(&vocabulary.tokens)[..])?;
    // Unused, and the same for all in converted files.
    keys.set("scores", &vec![-1000.0f32; vocabulary.tokens.len()][..])?;
    keys.set("token_type", &vocabulary.types[..])?;
    keys.set("merges", &borrowed(&vocabulary.merges)[..])?;
    for (key, text) in [
        ("bos_token_id", "<bos>"),
        ("eos_token_id", "<eos>"),
        ("unknown_token_id", "<unk>"),
        ("padding_token_id", "<pad>"),
        ("mask_token_id", "<mask>"),
    ] {
        keys.set(key, vocabulary.special(text))?;
    }
    keys.set("add_bos_token", true)?;
    keys.set("add_space_prefix", false)?;
    if suppresses {
        let ids = ["<audio|>", "<image|>"].map(|text| vocabulary.special(text) as i32);
        keys.set("suppress_tokens", &ids[..])?;
    }
    header.set("tokenizer.chat_template", CHAT_TEMPLATE)
}

fn borrowed(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}
