//! Arguments of the commands that read or write files: inspecting, tokenizing, converting.

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
pub(crate) struct InspectArguments {
    #[arg(help = MODEL_HELP)]
    pub(crate) model: OsString,
    /// List every tensor with its shape (fastest-varying dimension first), format, offset and size
    #[arg(long)]
    pub(crate) tensors: bool,
    /// List every metadata entry; long arrays are shown by type and length
    #[arg(long)]
    pub(crate) metadata: bool,
    /// List what one step does on this machine's GPU: each dispatch with its kernel, workgroups and bytes of weights
    #[arg(long)]
    pub(crate) plan: bool,
    /// With --plan: number of tokens in the step; 1 is decoding, 512 is a full chunk of a prompt
    #[arg(long, value_name = "N", default_value_t = 1, requires = "plan",
          value_parser = value_parser!(u32).range(1..=512), allow_negative_numbers = true)]
    pub(crate) rows: u32,
    /// With --plan: number of tokens already in the context
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
    /// The text; - or no text and no --file reads standard input
    #[arg(allow_hyphen_values = true)]
    pub(crate) text: Option<String>,
    /// Read the text from this file
    #[arg(long, conflicts_with = "text")]
    pub(crate) file: Option<PathBuf>,
    /// Add the begin-of-sequence token
    #[arg(long)]
    pub(crate) bos: bool,
    /// Treat special tokens such as <|turn> as plain text
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
    /// JSON file with messages, in the format of Ollama's /api/chat; - for standard input
    #[arg(long)]
    pub(crate) messages: PathBuf,
    /// JSON file with tools, in the format of Ollama's /api/chat
    #[arg(long)]
    pub(crate) tools: Option<PathBuf>,
    /// Let the model think before it answers [default: on]
    #[arg(long, value_name = "on|off", hide_possible_values = true, num_args = 0..=1, default_missing_value = "on")]
    pub(crate) think: Option<Switch>,
    /// Print JSON: {"prompt": "..."}
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SynthArguments {
    /// Model to imitate
    #[arg(value_parser = preset_parser(), ignore_case = true)]
    pub(crate) preset: Preset,
    /// File to write; an existing file is replaced when the new one is complete
    #[arg(value_name = "OUT.gguf")]
    pub(crate) output: PathBuf,
    /// Format of the weights
    #[arg(long, default_value = "q4_k_m", value_parser = mix_parser(), ignore_case = true)]
    pub(crate) format: Mix,
    /// Random seed for the weights
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Vocabulary size [default: 262144; 2048 for tiny presets]
    #[arg(long, value_name = "TOKENS",
          value_parser = value_parser!(u32).range(i64::from(SMALLEST_VOCABULARY)..=i64::from(LARGEST_VOCABULARY)),
          allow_negative_numbers = true)]
    pub(crate) vocab: Option<u32>,
    /// Add vision and audio towers, as in the files that Ollama publishes
    #[arg(long)]
    pub(crate) towers: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArguments {
    /// Folder of the checkpoint
    pub(crate) folder: PathBuf,
    /// File to write
    #[arg(value_name = "OUTPUT.gguf")]
    pub(crate) output: PathBuf,
    /// Format of the weights. Norms and scales stay f32; towers keep f16 or bf16
    #[arg(long, default_value = "q4_k_m", value_parser = mix_parser(), ignore_case = true)]
    pub(crate) format: Mix,
    /// Store matching tensors in another format, as in 'v.*=q8_0', where * matches any text; can be repeated, and the last
    /// match wins. A tensor that stays f32 is changed only by its full name
    #[arg(long, value_name = "PATTERN=FORMAT")]
    pub(crate) tensor: Vec<TensorRule>,
    /// Leave out the vision and audio towers. llama.cpp needs text models without towers
    #[arg(long)]
    pub(crate) text_only: bool,
    /// Model name to store in the file [default: the folder's name]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

fn preset_parser() -> impl TypedValueParser<Value = Preset> {
    PossibleValuesParser::new(Preset::ALL.map(Preset::name)).try_map(|name| name.parse::<Preset>())
}

fn mix_parser() -> impl TypedValueParser<Value = Mix> {
    PossibleValuesParser::new(Mix::ALL.map(Mix::name)).try_map(|name| name.parse::<Mix>())
}
