//! The metadata of a file: the keys that llama.cpp's converter writes, and those of Ollama for towers.

use rullama_gemma::{AudioKeys, Config, ExpertConfig, KvSource, LayerConfig, VisionKeys};
use rullama_gguf::{WriteError, Writer};

use crate::{
    Preset, SynthOptions,
    shape::{Audio, Text, Vision},
    towers::{KERNEL, PATCH, POOLED, SAMPLES},
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

    text(&preset.shape.text).write(header)?;
    if options.towers {
        vision(&preset.shape.vision, preset.shape.text.width).write(header)?;
        if let Some(tower) = &preset.shape.audio {
            audio(tower).write(header)?;
        }
    }
    // The one model without a tower for images is also the one whose file names tokens it must not write.
    let suppresses = matches!(preset.shape.vision, Vision::Direct { .. });
    tokenizer(header, vocabulary, suppresses)
}

/// The decoder as its metadata describe it. Counts that do not fit a `u32` are in no shape.
fn text(text: &Text) -> Config {
    let owners = text.layers - text.borrowing;
    let layers = (0..text.layers).map(|layer| {
        let global = text.is_global(layer);
        let heads = text.key_heads(layer);
        let donor = (0..owners).rev().find(|&donor| text.is_global(donor) == global);
        LayerConfig {
            window: (!global).then_some(text.window),
            heads: text.heads as u32,
            kv_heads: heads.count as u32,
            head_width: heads.width as u32,
            rope_base: if global { 1e6 } else { 1e4 },
            feed_forward_width: text.feed_forward(layer) as u32,
            kv: donor.filter(|_| layer >= owners).map_or(KvSource::Own, KvSource::Donor),
        }
    });
    Config {
        width: text.width as u32,
        // Said by the tokenizer's keys.
        vocabulary: 0,
        context_length: text.context,
        eps: EPSILON,
        per_layer_width: (text.per_layer > 0).then_some(text.per_layer as u32),
        soft_cap: Some(30.0),
        experts: text.experts.map(|experts| ExpertConfig {
            count: experts.count as u32,
            used: experts.used,
            width: experts.width as u32,
        }),
        layers: layers.collect(),
    }
}

fn vision(vision: &Vision, text_width: u64) -> VisionKeys {
    let (blocks, width, heads, inner) = match vision {
        Vision::Tower(tower) => (tower.blocks, tower.width, tower.heads, tower.feed_forward),
        Vision::Direct { .. } => (0, text_width, 0, 0),
    };
    VisionKeys {
        blocks,
        width: width as u32,
        heads: heads as u32,
        feed_forward_width: inner as u32,
        patch: PATCH as u32,
        pooled: POOLED as u32,
        eps: EPSILON,
    }
}

fn audio(audio: &Audio) -> AudioKeys {
    let (blocks, width, heads) = match audio {
        Audio::Tower(tower) => (tower.blocks, tower.width, tower.heads),
        Audio::Direct => (0, SAMPLES, 0),
    };
    AudioKeys { blocks, width: width as u32, heads: heads as u32, kernel: KERNEL as u32, eps: EPSILON }
}

/// `suppresses`: whether the file says that the ends of media must not be written.
fn tokenizer(header: &mut Writer, vocabulary: &Vocabulary, suppresses: bool) -> Result<(), WriteError> {
    header.set("tokenizer.ggml.model", "gemma4")?;
    header.set("tokenizer.ggml.tokens", &borrowed(&vocabulary.tokens)[..])?;
    // Unused, and the same for all in converted files.
    header.set("tokenizer.ggml.scores", &vec![-1000.0f32; vocabulary.tokens.len()][..])?;
    header.set("tokenizer.ggml.token_type", &vocabulary.types[..])?;
    header.set("tokenizer.ggml.merges", &borrowed(&vocabulary.merges)[..])?;
    for (key, text) in [
        ("bos_token_id", "<bos>"),
        ("eos_token_id", "<eos>"),
        ("unknown_token_id", "<unk>"),
        ("padding_token_id", "<pad>"),
        ("mask_token_id", "<mask>"),
    ] {
        header.set(&format!("tokenizer.ggml.{key}"), vocabulary.special(text))?;
    }
    header.set("tokenizer.ggml.add_bos_token", true)?;
    header.set("tokenizer.ggml.add_space_prefix", false)?;
    if suppresses {
        let ids = ["<audio|>", "<image|>"].map(|text| vocabulary.special(text) as i32);
        header.set("tokenizer.ggml.suppress_tokens", &ids[..])?;
    }
    header.set("tokenizer.chat_template", CHAT_TEMPLATE)
}

fn borrowed(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}
