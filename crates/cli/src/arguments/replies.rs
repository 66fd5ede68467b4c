//! Arguments of the commands that compute replies or logits.

use std::{ffi::OsString, path::PathBuf};

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use rullama_engine::{CacheFormat, OptionRange};
use rullama_gpu::Residency;

use super::{
    AttachArguments, MODEL_HELP, TowerArguments, optional_model_help,
    values::{BackendChoice, IdList, Switch, id_list, number, whole},
};

/// The largest number of MiB whose bytes fit in 64 bits.
const MOST_MIB: i128 = (u64::MAX >> 20) as i128;
/// The CPU can read all weights from the file, so 0 is allowed.
const WEIGHT_MEMORY: OptionRange = OptionRange::Whole { least: 0, most: MOST_MIB };
const GPU_MEMORY: OptionRange = OptionRange::Whole { least: 1, most: MOST_MIB };

pub(super) const BACKEND_HELP: &str = "Where to run the model";

pub(super) const GENERATE_EXAMPLES: &str = "\
Examples:
  rullama generate \"What is rullama?\"
  rullama generate gemma4:e2b \"Why is the sky blue?\"
  rullama generate -m gemma4:e2b -p \"Why is the sky blue?\"
  git diff | rullama generate gemma4:e2b -
  rullama generate model.gguf --raw -p \"Once upon a time\"";

/// How a model is loaded.
#[derive(Debug, Args)]
#[command(next_help_heading = "Loading")]
pub(crate) struct LoadArguments {
    /// Context length in tokens [default: the model's own, at most 4096 on the GPU]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(OptionRange::CONTEXT), allow_negative_numbers = true)]
    pub(crate) context: Option<u32>,
    #[command(flatten)]
    pub(crate) memory: MemoryArguments,
}

/// How memory is used.
#[derive(Debug, Args)]
#[command(next_help_heading = "Loading")]
pub(crate) struct MemoryArguments {
    /// Format of the key-value cache: full precision, half precision or eight bits [default: f16 on the GPU, f32 on the CPU]
    #[arg(long, value_parser = cache_format_parser())]
    pub(crate) kv: Option<CacheFormat>,
    /// On the CPU: keep up to this many MiB of weights in memory and read the rest from the file for each token
    #[arg(long, value_name = "MIB", default_value_t = 8192, value_parser = whole::<u64>(WEIGHT_MEMORY),
          allow_negative_numbers = true)]
    pub(crate) weight_memory: u64,
    /// On the GPU: use at most this many MiB of GPU memory [default: all]
    #[arg(long, value_name = "MIB", value_parser = whole::<u64>(GPU_MEMORY), allow_negative_numbers = true)]
    pub(crate) gpu_memory: Option<u64>,
    /// On the GPU: where to keep weights. gpu keeps all of them on the GPU; rows reads embedding tables from the file, row
    /// by row; paged also reads experts from the file when they are needed [default: the first that fits]
    #[arg(long, value_parser = residency_parser())]
    pub(crate) residency: Option<Residency>,
}

fn cache_format_parser() -> impl TypedValueParser<Value = CacheFormat> {
    PossibleValuesParser::new(CacheFormat::ALL.map(CacheFormat::as_str))
        .try_map(|name| name.parse::<CacheFormat>())
}

fn residency_parser() -> impl TypedValueParser<Value = Residency> {
    PossibleValuesParser::new(Residency::ALL.map(Residency::as_str)).try_map(|name| name.parse::<Residency>())
}

/// How tokens are chosen. An option that is not given has the model's default, or else Ollama's.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct SamplingArguments {
    /// Stop after this many tokens; -1 for no limit [default: -1]
    #[arg(long, value_name = "N", value_parser = whole::<i64>(OptionRange::MAX_TOKENS), allow_negative_numbers = true)]
    pub(crate) max_tokens: Option<i64>,
    /// Randomness; 0 always picks the most likely token [default: 1]
    #[arg(long, value_name = "T", value_parser = number(OptionRange::TEMPERATURE), allow_negative_numbers = true)]
    pub(crate) temperature: Option<f32>,
    /// Pick from the K most likely tokens; 0 for all [default: 64]
    #[arg(long, value_name = "K", value_parser = whole::<i64>(OptionRange::TOP_K), allow_negative_numbers = true)]
    pub(crate) top_k: Option<i64>,
    /// Pick from the most likely tokens whose probabilities add up to P [default: 0.95]
    #[arg(long, value_name = "P", value_parser = number(OptionRange::PROBABILITY), allow_negative_numbers = true)]
    pub(crate) top_p: Option<f32>,
    /// Drop tokens with less than M times the probability of the most likely one [default: 0]
    #[arg(long, value_name = "M", value_parser = number(OptionRange::PROBABILITY), allow_negative_numbers = true)]
    pub(crate) min_p: Option<f32>,
    /// Penalty for tokens that occurred recently; 1 for none [default: 1]
    #[arg(long, value_name = "R", value_parser = number(OptionRange::REPEAT_PENALTY), allow_negative_numbers = true)]
    pub(crate) repeat_penalty: Option<f32>,
    /// Random seed. The same seed gives the same text; -1 picks a new seed each time [default: -1]
    #[arg(long, value_name = "S", value_parser = whole::<i128>(OptionRange::SEED), allow_negative_numbers = true)]
    pub(crate) seed: Option<i128>,
    /// Stop when the model writes this text, which is not printed; can be repeated
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) stop: Vec<String>,
    /// Keep going after the model's end-of-reply token
    #[arg(long)]
    pub(crate) ignore_eos: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    #[arg(help = optional_model_help())]
    pub(crate) model: Option<OsString>,
    /// Ask this, print the reply and exit; - reads it from standard input
    #[arg(value_name = "PROMPT")]
    pub(crate) words: Vec<String>,
    /// The model, as an option instead of an argument
    #[arg(long = "model", short = 'm', value_name = "MODEL", id = "model_option")]
    pub(crate) model_option: Option<OsString>,
    /// The prompt, as an option instead of an argument
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "words")]
    pub(crate) prompt: Option<String>,
    /// Let the model think before it answers [default: on]
    #[arg(long, value_name = "on|off", hide_possible_values = true, num_args = 0..=1, default_missing_value = "on")]
    pub(crate) think: Option<Switch>,
    /// Show the speed after each reply
    #[arg(long)]
    pub(crate) verbose: bool,
    #[arg(long, value_enum, default_value_t = BackendChoice::Auto, help = BACKEND_HELP)]
    pub(crate) backend: BackendChoice,
    #[command(flatten)]
    pub(crate) attach: AttachArguments,
    #[command(flatten)]
    pub(crate) sampling: SamplingArguments,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("input").args(["prompt", "ids", "messages"])))]
pub(crate) struct GenerateArguments {
    #[arg(value_name = "MODEL", help = optional_model_help())]
    pub(crate) first: Option<OsString>,
    /// The prompt; - reads it from standard input
    #[arg(value_name = "PROMPT")]
    pub(crate) second: Option<String>,
    /// The model, as an option instead of an argument
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<OsString>,
    /// The prompt, as an option instead of an argument
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) prompt: Option<String>,
    /// Continue the prompt as plain text instead of answering it
    #[arg(long, conflicts_with_all = ["ids", "messages"])]
    pub(crate) raw: bool,
    /// Continue these token ids, separated by commas
    #[arg(long, value_name = "1,2,3", value_parser = id_list)]
    pub(crate) ids: Option<IdList>,
    /// Answer the messages in this JSON file, in the format of Ollama's /api/chat; - for standard input. Their "images" and
    /// "audio" are lists of paths, data: URLs or base64
    #[arg(long, value_name = "FILE")]
    pub(crate) messages: Option<PathBuf>,
    /// Offer the tools in this JSON file, in the format of Ollama's /api/chat
    #[arg(long, value_name = "FILE", conflicts_with_all = ["raw", "ids"])]
    pub(crate) tools: Option<PathBuf>,
    /// Let the model think before it answers [default: on]
    #[arg(long, value_name = "on|off", hide_possible_values = true, num_args = 0..=1, default_missing_value = "on")]
    pub(crate) think: Option<Switch>,
    /// Print the complete reply as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[arg(long, value_enum, default_value_t = BackendChoice::Auto, help = BACKEND_HELP)]
    pub(crate) backend: BackendChoice,
    #[command(flatten)]
    pub(crate) attach: AttachArguments,
    #[command(flatten)]
    pub(crate) sampling: SamplingArguments,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("input").args(["ids", "messages"]).required(true)))]
pub(crate) struct LogitsArguments {
    #[arg(help = MODEL_HELP)]
    pub(crate) model: OsString,
    /// Token ids, separated by commas
    #[arg(long, value_name = "1,2,3", value_parser = id_list)]
    pub(crate) ids: Option<IdList>,
    /// The messages in this JSON file, in the format of Ollama's /api/chat, as the prompt of a reply; - for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) messages: Option<PathBuf>,
    /// With --messages: let the model think before it answers [default: as the file says, or else off]
    #[arg(long, value_name = "on|off", hide_possible_values = true, num_args = 0..=1, default_missing_value = "on",
          conflicts_with = "ids")]
    pub(crate) think: Option<Switch>,
    /// Write the logits after every token, not only after the last
    #[arg(long)]
    pub(crate) all: bool,
    /// File to write: f32, shape [rows, vocabulary]
    #[arg(long, value_name = "FILE.npy")]
    pub(crate) out: PathBuf,
    /// Where to run the model
    #[arg(long, value_enum, default_value_t = BackendChoice::Cpu)]
    pub(crate) backend: BackendChoice,
    /// Print JSON: {"rows": n, "vocabulary": n, "path": "...", "ids": [...]}. A row of an image or a sound has a placeholder
    /// id
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) towers: TowerArguments,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
}
