//! What commands about files take: showing, splitting into tokens, writing.

use std::{ffi::OsString, path::PathBuf};

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
    value_parser,
};
use rullama_convert::TensorRule;
use rullama_synth::{LARGEST_VOCABULARY, Mix, Preset, SMALLEST_VOCABULARY};

use super::{
    MODEL_HELP,
    values::{IdList, Switch, id_list},
};

#[derive(Debug, Args)]
pub(crate) struct ModelsArguments {
    /// Only these models
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Read every blob and compare it with its sha256
    #[arg(long)]
    pub(crate) verify: bool,
    /// Print JSON in the shape of Ollama's /api/tags
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArguments {
    #[arg(help = MODEL_HELP)]
    pub(crate) model: OsString,
    /// List every tensor with shape (fastest varying extent first), format, offset and size
    #[arg(long)]
    pub(crate) tensors: bool,
    /// List every metadata entry; of long arrays, only type and length
    #[arg(long)]
    pub(crate) metadata: bool,
    /// List what a step does on the GPU of this machine: each dispatch with its kernel, workgroups and bytes of weights
    #[arg(long)]
    pub(crate) plan: bool,
    /// Tokens of that step: 1 is a step of decoding, 512 a whole chunk of a prompt
    #[arg(long, value_name = "N", default_value_t = 1, requires = "plan",
          value_parser = value_parser!(u32).range(1..=512), allow_negative_numbers = true)]
    pub(crate) rows: u32,
    /// Tokens read before that step
    #[arg(long, value_name = "P", default_value_t = 0, requires = "plan", allow_negative_numbers = true)]
    pub(crate) position: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TokenizeArguments {
    #[arg(help = MODEL_HELP)]
    pub(crate) model: OsString,
    /// The text; without it and without --file, standard input is read, byte for byte
    #[arg(allow_hyphen_values = true)]
    pub(crate) text: Option<String>,
    /// Read the text from a file, byte for byte
    #[arg(long, conflicts_with = "text")]
    pub(crate) file: Option<PathBuf>,
    /// Begin with the token that begins every prompt
    #[arg(long)]
    pub(crate) bos: bool,
    /// Take special tokens such as <|turn> as plain text
    #[arg(long)]
    pub(crate) plain: bool,
    /// Print JSON: {"ids": [...], "pieces": [...]}
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DetokenizeArguments {
    #[arg(help = MODEL_HELP)]
    pub(crate) model: OsString,
    /// Token ids, separated by commas
    #[arg(long, value_name = "1,2,3", value_parser = id_list)]
    pub(crate) ids: IdList,
    /// Print JSON: {"text": "..."}
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RenderArguments {
    #[arg(help = MODEL_HELP)]
    pub(crate) model: OsString,
    /// A JSON file with messages as in Ollama's /api/chat; - for standard input
    #[arg(long)]
    pub(crate) messages: PathBuf,
    /// A JSON file with tools as in Ollama's /api/chat
    #[arg(long)]
    pub(crate) tools: Option<PathBuf>,
    /// Whether the model is asked to think first [default: on]
    #[arg(long, value_name = "on|off", hide_possible_values = true)]
    pub(crate) think: Option<Switch>,
    /// Print JSON: {"prompt": "..."}
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SynthArguments {
    /// Which model
    #[arg(value_parser = preset_parser(), ignore_case = true)]
    pub(crate) preset: Preset,
    /// The file to write; one that is there is replaced when the new one is complete
    #[arg(value_name = "OUT.gguf")]
    pub(crate) output: PathBuf,
    /// How weights are stored
    #[arg(long, default_value = "q4_k_m", value_parser = mix_parser(), ignore_case = true)]
    pub(crate) format: Mix,
    /// Which of all possible random weights
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Size of the vocabulary [default: 262144; 2048 for tiny presets]
    #[arg(long, value_name = "TOKENS",
          value_parser = value_parser!(u32).range(i64::from(SMALLEST_VOCABULARY)..=i64::from(LARGEST_VOCABULARY)),
          allow_negative_numbers = true)]
    pub(crate) vocab: Option<u32>,
    /// Add what makes soft tokens of images and sound, as in the files that Ollama publishes
    #[arg(long)]
    pub(crate) towers: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArguments {
    /// The checkpoint's folder
    pub(crate) folder: PathBuf,
    /// The file to write
    #[arg(value_name = "OUTPUT.gguf")]
    pub(crate) output: PathBuf,
    /// How weights are stored; norms and scales stay f32, and towers f16 and bf16 where these are not
    #[arg(long, default_value = "q4_k_m", value_parser = mix_parser(), ignore_case = true)]
    pub(crate) format: Mix,
    /// How tensors with such names are stored instead, * standing for any text, as in 'v.*=q8_0'; may be given several
    /// times, and the last that fits a name counts. What stays f32 is only changed by its whole name
    #[arg(long, value_name = "PATTERN=FORMAT")]
    pub(crate) tensor: Vec<TensorRule>,
    /// Leave out what makes soft tokens of images and sound; llama.cpp reads text models without them only
    #[arg(long)]
    pub(crate) text_only: bool,
    /// What the file calls the model [default: the name of the folder]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Replace a file that is there
    #[arg(long)]
    pub(crate) force: bool,
}

fn preset_parser() -> impl TypedValueParser<Value = Preset> {
    PossibleValuesParser::new(Preset::ALL.map(Preset::name)).try_map(|name| name.parse::<Preset>())
}

fn mix_parser() -> impl TypedValueParser<Value = Mix> {
    PossibleValuesParser::new(Mix::ALL.map(Mix::name)).try_map(|name| name.parse::<Mix>())
}
