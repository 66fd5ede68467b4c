//! What commands that measure and compare take.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, value_parser};
use rullama_engine::OptionRange;

use super::{
    MODEL_HELP, optional_model_help,
    replies::MemoryArguments,
    values::{BackendChoice, number, whole},
};

#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    #[arg(help = optional_model_help())]
    pub(crate) model: Option<OsString>,
    /// Tokens of the prompts; 0 for none
    #[arg(long, value_name = "N", default_value_t = 512, allow_negative_numbers = true)]
    pub(crate) prompt: u32,
    /// Tokens to generate; 0 for none
    #[arg(long, value_name = "N", default_value_t = 128, allow_negative_numbers = true)]
    pub(crate) generate: u32,
    /// Tokens read before, separated by commas; each is measured
    #[arg(
        long,
        value_name = "N,N",
        value_delimiter = ',',
        default_value = "0,4096",
        allow_negative_numbers = true
    )]
    pub(crate) depth: Vec<u32>,
    /// Repetitions
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u32).range(1..),
          allow_negative_numbers = true)]
    pub(crate) repeat: u32,
    /// Also show the time of each kernel, told by the GPU's own clock
    #[arg(long)]
    pub(crate) profile: bool,
    /// What computes [default: gpu; for the demo model the CPU where there is no real GPU]
    #[arg(long, value_enum)]
    pub(crate) backend: Option<BackendChoice>,
    /// Tokens a conversation may have [default: as many as are needed]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(OptionRange::CONTEXT), allow_negative_numbers = true)]
    pub(crate) context: Option<u32>,
    #[command(flatten)]
    pub(crate) memory: MemoryArguments,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How far apart logits may be: a distance, so never negative.
const TOLERANCE: OptionRange = OptionRange::Number { least: 0.0, most: f32::MAX };

#[derive(Debug, Args)]
pub(crate) struct ParityArguments {
    #[arg(help = MODEL_HELP)]
    pub(crate) model: OsString,
    /// What the GPU is compared with: cpu, or the address of a server of Ollama or llama.cpp
    #[arg(long, value_name = "cpu|URL", default_value = "cpu", value_parser = against)]
    pub(crate) against: Against,
    /// The model's name on an Ollama server [default: its name in the store]
    #[arg(long = "model", value_name = "NAME", id = "server_model")]
    pub(crate) server_model: Option<String>,
    /// A file with one prompt on each line, or a JSON list of prompts; - for standard input [default: a handful]
    #[arg(long, value_name = "F")]
    pub(crate) prompts: Option<PathBuf>,
    /// Most tokens to compare of each prompt's continuation
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u32).range(1..),
          allow_negative_numbers = true)]
    pub(crate) max_tokens: u32,
    /// How close the two best logits may be for either of them to be right
    #[arg(long, value_name = "T", default_value_t = 0.05, value_parser = number(TOLERANCE),
          allow_negative_numbers = true)]
    pub(crate) tolerance: f32,
    #[command(flatten)]
    pub(crate) memory: MemoryArguments,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What the GPU is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Against {
    Cpu,
    /// A server, by its address without a slash at the end.
    Server(String),
}

fn against(text: &str) -> Result<Against, String> {
    match text {
        "cpu" => Ok(Against::Cpu),
        url if url.starts_with("http://") || url.starts_with("https://") => {
            Ok(Against::Server(url.trim_end_matches('/').to_owned()))
        }
        _ => Err("`cpu` or an address that begins with http:// was expected".to_owned()),
    }
}
