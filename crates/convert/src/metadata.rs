//! The metadata of a file: what llama.cpp's converter writes, and what Ollama's does for towers.

use rullama_gguf::Writer;
use serde::Deserialize;

use crate::{
    ConvertError, ConvertOptions,
    config::{Described, OneOrMore},
    files::Folder,
    tokenizer,
};

/// How the makers of a model would have tokens chosen.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Generation {
    temperature: Option<f32>,
    top_k: Option<i32>,
    top_p: Option<f32>,
    pub(crate) eos_token_id: Option<OneOrMore>,
    pub(crate) suppress_tokens: Option<Vec<i32>>,
}

/// Sets all keys.
pub(crate) fn set(
    header: &mut Writer,
    folder: Folder<'_>,
    described: &Described,
    options: &ConvertOptions,
) -> Result<(), ConvertError> {
    let generation: Generation = folder.optional_json("generation_config.json")?.unwrap_or_default();
    header.set("general.architecture", "gemma4")?;
    header.set("general.type", "model")?;
    let name = options.name.clone().unwrap_or_else(|| folder_name(folder));
    header.set("general.name", name.as_str())?;
    if let Some(temperature) = generation.temperature {
        header.set("general.sampling.temp", temperature)?;
    }
    if let Some(top_k) = generation.top_k {
        header.set("general.sampling.top_k", top_k)?;
    }
    if let Some(top_p) = generation.top_p {
        header.set("general.sampling.top_p", top_p)?;
    }
    header.set("general.file_type", options.mix.file_type())?;
    header.set("general.quantization_version", 2u32)?;

    described.text.write(header)?;
    if let Some(keys) = described.vision_keys() {
        keys.write(header)?;
    }
    if let Some(keys) = described.audio_keys() {
        keys.write(header)?;
    }
    tokenizer::set(header, folder, described, &generation)
}

fn folder_name(folder: Folder<'_>) -> String {
    // So that `.` has a name too.
    let path = folder.0.canonicalize().unwrap_or_else(|_| folder.0.to_owned());
    path.file_name().map_or_else(|| "Gemma 4".to_owned(), |name| name.to_string_lossy().into_owned())
}
