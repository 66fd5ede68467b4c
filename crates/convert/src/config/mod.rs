//! The configuration of a checkpoint, read once into types that cannot be wrong.
//!
//! What a `config.json` leaves out has the default that transformers gives it.

mod text;
mod towers;

use rullama_gemma::{AudioKeys, Config, VisionKeys};
use serde::Deserialize;
use serde_json::Value;

use self::text::TextConfig;
pub(crate) use self::towers::{Audio, Vision};
use crate::{ConvertError, files::Folder};

/// The file that every checkpoint has.
const FILE: &str = "config.json";

/// The models that can be converted, by `architectures` and by `model_type`.
const ARCHITECTURES: [&str; 4] = [
    "Gemma4ForConditionalGeneration",
    "Gemma4ForCausalLM",
    "Gemma4UnifiedForConditionalGeneration",
    "Gemma4UnifiedForCausalLM",
];

/// The one activation of the family.
const ACTIVATION: &str = "gelu_pytorch_tanh";

/// Everything that is known of a model before its weights are looked at.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) text: Config,
    /// Whether global layers have no values of their own and use their keys.
    pub(crate) keys_as_values: bool,
    /// Whether the output head is the embedding table.
    pub(crate) tied: bool,
    /// Pairs of a global layer's columns that are rotated, and those that are not.
    pub(crate) rotated: (u32, u32),
    pub(crate) vision: Option<Vision>,
    pub(crate) audio: Option<Audio>,
    pub(crate) ids: Ids,
}

/// Tokens that the configuration names by id.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ids {
    pub(crate) bos_token_id: Option<u32>,
    pub(crate) eos_token_id: Option<OneOrMore>,
    pub(crate) pad_token_id: Option<u32>,
    pub(crate) image_token_id: Option<u32>,
    pub(crate) boi_token_id: Option<u32>,
    pub(crate) eoi_token_id: Option<u32>,
    pub(crate) audio_token_id: Option<u32>,
    pub(crate) boa_token_id: Option<u32>,
    pub(crate) eoa_token_index: Option<u32>,
    pub(crate) video_token_id: Option<u32>,
}

/// A number, or a list of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOrMore {
    One(u32),
    More(Vec<u32>),
}

impl OneOrMore {
    pub(crate) fn ids(&self) -> &[u32] {
        match self {
            Self::One(id) => std::slice::from_ref(id),
            Self::More(ids) => ids,
        }
    }
}

impl Described {
    /// Reads and checks the configuration of the checkpoint in `folder`.
    pub(crate) fn read(folder: Folder<'_>) -> Result<Self, ConvertError> {
        let root: Value = folder.json(FILE)?;
        let unified = check_architecture(&root)?;
        if let Some(quantised) = root.get("quantization_config").filter(|value| !value.is_null()) {
            let method = quantised.get("quant_method").and_then(Value::as_str).unwrap_or("an unknown method");
            return Err(ConvertError::Quantised { method: method.to_owned() });
        }
        let part = |key: &str| root.get(key).filter(|value| !value.is_null()).cloned();
        // A checkpoint of the decoder alone has its configuration at the top.
        let text_value = part("text_config").unwrap_or_else(|| root.clone());
        let mut ids: Ids = parse(folder, root.clone())?;
        let text_ids: Ids = parse(folder, text_value.clone())?;
        ids.bos_token_id = ids.bos_token_id.or(text_ids.bos_token_id);
        ids.eos_token_id = ids.eos_token_id.or(text_ids.eos_token_id);
        ids.pad_token_id = ids.pad_token_id.or(text_ids.pad_token_id);

        let mut text: TextConfig = parse(folder, text_value.clone())?;
        if unified {
            text.without_extras();
        }
        let tied = root.get("tie_word_embeddings").or_else(|| text_value.get("tie_word_embeddings"));
        let tied = tied.and_then(Value::as_bool).unwrap_or(true);
        let width = text.hidden_size;
        let vision = part("vision_config")
            .map(|value| {
                if unified {
                    towers::direct_vision(folder, value, width)
                } else {
                    towers::vision(folder, value)
                }
            })
            .transpose()?;
        let audio = part("audio_config")
            .map(
                |value| {
                    if unified { towers::direct_audio(folder, value) } else { towers::audio(folder, value) }
                },
            )
            .transpose()?;
        let described = Self {
            // First: what it checks, the others rely on.
            text: text.described()?,
            rotated: text.rotated()?,
            keys_as_values: text.attention_k_eq_v,
            tied,
            vision,
            audio,
            ids,
        };
        check_processors(folder)?;
        Ok(described)
    }

    pub(crate) fn vision_keys(&self) -> Option<VisionKeys> {
        self.vision.map(|vision| match vision {
            Vision::Tower { keys, .. } | Vision::Direct { keys, .. } => keys,
        })
    }

    pub(crate) fn audio_keys(&self) -> Option<AudioKeys> {
        self.audio.map(|audio| match audio {
            Audio::Tower { keys, .. } | Audio::Direct { keys } => keys,
        })
    }
}

/// Tells whether images and sound go to the decoder without towers, if it is a Gemma 4 model at all.
fn check_architecture(root: &Value) -> Result<bool, ConvertError> {
    let named = root.get("architectures").and_then(|list| list.get(0)).and_then(Value::as_str);
    let kind = root.get("model_type").and_then(Value::as_str).unwrap_or_default();
    let known = match named {
        Some(name) => ARCHITECTURES.contains(&name),
        None => ["gemma4", "gemma4_text", "gemma4_unified", "gemma4_unified_text"].contains(&kind),
    };
    if known {
        return Ok(
            named.unwrap_or_default().starts_with("Gemma4Unified") || kind.starts_with("gemma4_unified")
        );
    }
    Err(ConvertError::Architecture {
        found: named.unwrap_or(kind).to_owned(),
        expected: ARCHITECTURES.join(", "),
    })
}

fn parse<T: serde::de::DeserializeOwned>(folder: Folder<'_>, value: Value) -> Result<T, ConvertError> {
    serde_json::from_value(value).map_err(|source| ConvertError::Json { path: folder.path(FILE), source })
}

/// How pictures and sound are prepared. No key of the file says so, and every reader does it in one way.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Processor {
    image_mean: Option<Vec<f64>>,
    image_std: Option<Vec<f64>>,
    sampling_rate: Option<u32>,
    image_processor: Option<Box<Processor>>,
    feature_extractor: Option<Box<Processor>>,
}

fn check_processors(folder: Folder<'_>) -> Result<(), ConvertError> {
    for name in ["preprocessor_config.json", "processor_config.json"] {
        if let Some(processor) = folder.optional_json::<Processor>(name)? {
            processor.check()?;
        }
    }
    Ok(())
}

impl Processor {
    fn check(&self) -> Result<(), ConvertError> {
        let all = |list: &Option<Vec<f64>>, value| list.iter().flatten().all(|&found| found == value);
        for (key, list, value, expected) in [
            ("image_mean", &self.image_mean, 0.0, "all zeros"),
            ("image_std", &self.image_std, 1.0, "all ones"),
        ] {
            if !all(list, value) {
                return Err(ConvertError::Config { key, found: format!("{list:?}"), expected });
            }
        }
        if let Some(rate) = self.sampling_rate {
            within("sampling_rate", rate, 16_000..=16_000, "16000 samples a second")?;
        }
        self.image_processor.iter().chain(&self.feature_extractor).try_for_each(|part| part.check())
    }
}

fn within(
    key: &'static str,
    found: u32,
    range: std::ops::RangeInclusive<u32>,
    expected: &'static str,
) -> Result<(), ConvertError> {
    if range.contains(&found) {
        Ok(())
    } else {
        Err(ConvertError::Config { key, found: found.to_string(), expected })
    }
}

fn positive(key: &'static str, found: f32) -> Result<f32, ConvertError> {
    if found.is_finite() && found > 0.0 {
        Ok(found)
    } else {
        Err(ConvertError::Config { key, found: found.to_string(), expected: "a positive number" })
    }
}
