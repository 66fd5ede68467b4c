//! What commands that compute replies or logits take.

use std::{ffi::OsString, path::PathBuf};

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use rullama_engine::{CacheFormat, OptionRange};
use rullama_gpu::Residency;

use super::{
    MODEL_HELP, optional_model_help,
    values::{BackendChoice, IdList, Switch, id_list, number, whole},
};

/// The most MiB whose bytes can be counted in 64 bits.
const MOST_MIB: i128 = (u64::MAX >> 20) as i128;
/// On the CPU, holding none of the weights in memory is possible.
const WEIGHT_MEMORY: OptionRange = OptionRange::Whole { least: 0, most: MOST_MIB };
const GPU_MEMORY: OptionRange = OptionRange::Whole { least: 1, most: MOST_MIB };

/// How a model is loaded.
#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    /// Tokens the conversation may have [default: as many as the model was made for; at most 4096 on the GPU]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(OptionRange::CONTEXT), allow_negative_numbers = true)]
    pub(crate) context: Option<u32>,
    #[command(flatten)]
    pub(crate) memory: MemoryArguments,
}

/// What memory is used for.
#[derive(Debug, Args)]
pub(crate) struct MemoryArguments {
    /// Format of keys and values: exact, half precision, or eight bits [default: f32 on the CPU, f16 on the GPU]
    #[arg(long, value_parser = cache_format_parser())]
    pub(crate) kv: Option<CacheFormat>,
    /// MiB of weights that are held in memory on the CPU; the others are read again for each token
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = whole::<u64>(WEIGHT_MEMORY),
          allow_negative_numbers = true)]
    pub(crate) weight_memory: u64,
    /// MiB of the GPU's memory that the model and its conversation may take [default: all]
    #[arg(long, value_name = "MIB", value_parser = whole::<u64>(GPU_MEMORY), allow_negative_numbers = true)]
    pub(crate) gpu_memory: Option<u64>,
    /// Where weights live on the GPU backend: all on the GPU; embedding tables in the file, read by rows; or also
    /// experts in the file, read when they are needed [default: the first that fits]
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

/// How tokens are chosen. What is not given has the model's own default, or else Ollama's.
#[derive(Debug, Args)]
pub(crate) struct SamplingArguments {
    /// Most tokens to generate; -1 for no limit but the context [default: -1]
    #[arg(long, value_name = "N", value_parser = whole::<i64>(OptionRange::MAX_TOKENS), allow_negative_numbers = true)]
    pub(crate) max_tokens: Option<i64>,
    /// 0 always takes the most probable token [default: 1]
    #[arg(long, value_name = "T", value_parser = number(OptionRange::TEMPERATURE), allow_negative_numbers = true)]
    pub(crate) temperature: Option<f32>,
    /// Choose among the K most probable tokens; 0 for all [default: 64]
    #[arg(long, value_name = "K", value_parser = whole::<i64>(OptionRange::TOP_K), allow_negative_numbers = true)]
    pub(crate) top_k: Option<i64>,
    /// Choose among the most probable tokens that together have probability P [default: 0.95]
    #[arg(long, value_name = "P", value_parser = number(OptionRange::PROBABILITY), allow_negative_numbers = true)]
    pub(crate) top_p: Option<f32>,
    /// Drop tokens less probable than M times the most probable one [default: 0]
    #[arg(long, value_name = "M", value_parser = number(OptionRange::PROBABILITY), allow_negative_numbers = true)]
    pub(crate) min_p: Option<f32>,
    /// Make tokens that occurred lately less probable; 1 for not at all [default: 1]
    #[arg(long, value_name = "R", value_parser = number(OptionRange::REPEAT_PENALTY), allow_negative_numbers = true)]
    pub(crate) repeat_penalty: Option<f32>,
    /// The same seed gives the same text; -1 for another each time [default: -1]
    #[arg(long, value_name = "S", value_parser = whole::<i128>(OptionRange::SEED), allow_negative_numbers = true)]
    pub(crate) seed: Option<i128>,
    /// End the reply before this text; may be given several times
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) stop: Vec<String>,
    /// Do not end when the model does
    #[arg(long)]
    pub(crate) ignore_eos: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    #[arg(help = optional_model_help())]
    pub(crate) model: Option<OsString>,
    /// Whether the model is asked to think first [default: on]
    #[arg(long, value_name = "on|off", hide_possible_values = true)]
    pub(crate) think: Option<Switch>,
    /// Show the speed of each reply
    #[arg(long)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) sampling: SamplingArguments,
    /// What computes [default: gpu; for the demo model the CPU where there is no real GPU]
    #[arg(long, value_enum)]
    pub(crate) backend: Option<BackendChoice>,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("input").required(true).args(["prompt", "ids", "messages"])))]
pub(crate) struct GenerateArguments {
    #[arg(help = optional_model_help())]
    pub(crate) model: Option<OsString>,
    /// One message to the model
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) prompt: Option<String>,
    /// Continue the prompt as it is, instead of answering it
    #[arg(long, requires = "prompt", conflicts_with_all = ["ids", "messages"])]
    pub(crate) raw: bool,
    /// Token ids to continue as they are, separated by commas
    #[arg(long, value_name = "1,2,3", value_parser = id_list)]
    pub(crate) ids: Option<IdList>,
    /// A JSON file with messages as in Ollama's /api/chat; - for standard input
    #[arg(long, value_name = "F.json")]
    pub(crate) messages: Option<PathBuf>,
    /// A JSON file with tools as in Ollama's /api/chat
    #[arg(long, value_name = "F.json", conflicts_with_all = ["raw", "ids"])]
    pub(crate) tools: Option<PathBuf>,
    /// Whether the model is asked to think first [default: on]
    #[arg(long, value_name = "on|off", hide_possible_values = true)]
    pub(crate) think: Option<Switch>,
    #[command(flatten)]
    pub(crate) sampling: SamplingArguments,
    /// What computes [default: gpu; for the demo model the CPU where there is no real GPU]
    #[arg(long, value_enum)]
    pub(crate) backend: Option<BackendChoice>,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
    /// Print JSON when the reply is complete
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogitsArguments {
    #[arg(help = MODEL_HELP)]
    pub(crate) model: OsString,
    /// Token ids, separated by commas
    #[arg(long, value_name = "1,2,3", value_parser = id_list)]
    pub(crate) ids: IdList,
    /// The logits of every token instead of the last
    #[arg(long)]
    pub(crate) all: bool,
    /// Where they are written: f32, shape [rows, vocabulary]
    #[arg(long, value_name = "F.npy")]
    pub(crate) out: PathBuf,
    /// What computes
    #[arg(long, value_enum, default_value_t = BackendChoice::Cpu)]
    pub(crate) backend: BackendChoice,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
    /// Print JSON: {"rows": n, "vocabulary": n, "path": "..."}
    #[arg(long)]
    pub(crate) json: bool,
}
