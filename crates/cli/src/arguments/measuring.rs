//! Arguments of the commands that measure and compare.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, builder::ArgPredicate, value_parser};
use rullama_engine::OptionRange;
use rullama_media::MAX_SECONDS;

use super::{
    MODEL_HELP, TowerArguments, optional_model_help,
    replies::{BACKEND_HELP, MemoryArguments},
    values::{BackendChoice, ImageSize, image_size, number, whole},
};

/// Where images or sounds are measured, the text is not unless it is asked for.
const NO_TEXT: [(&str, ArgPredicate, &str); 2] =
    [("image", ArgPredicate::IsPresent, "0"), ("audio", ArgPredicate::IsPresent, "0")];

#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    #[arg(help = optional_model_help())]
    pub(crate) model: Option<OsString>,
    /// Length of the prompts in tokens; 0 to measure none
    #[arg(long, value_name = "N", default_value_t = 512, default_value_ifs = NO_TEXT, allow_negative_numbers = true)]
    pub(crate) prompt: u32,
    /// Tokens to generate; 0 to measure none
    #[arg(long, value_name = "N", default_value_t = 128, default_value_ifs = NO_TEXT, allow_negative_numbers = true)]
    pub(crate) generate: u32,
    /// Tokens already in the context, separated by commas; each is measured
    #[arg(
        long,
        value_name = "N,N",
        value_delimiter = ',',
        default_value = "0,4096",
        allow_negative_numbers = true
    )]
    pub(crate) depth: Vec<u32>,
    /// Numbers of conversations to decode together, separated by commas, such as 1,4,8,16; the speed of all of them is
    /// added up
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = value_parser!(u32).range(1..=64),
          allow_negative_numbers = true)]
    pub(crate) parallel: Vec<u32>,
    /// Measure how long encoding an image of this size takes, such as 640x480. The text is then measured only if --prompt or
    /// --generate is given
    #[arg(long, value_name = "WxH", value_parser = image_size)]
    pub(crate) image: Option<ImageSize>,
    /// Measure how long encoding a sound of this length takes; the same applies
    #[arg(long, value_name = "SECONDS", value_parser = number(SECONDS), allow_negative_numbers = true)]
    pub(crate) audio: Option<f32>,
    /// Number of repetitions
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u32).range(1..),
          allow_negative_numbers = true)]
    pub(crate) repeat: u32,
    /// Also show the time of each kernel, measured by the GPU
    #[arg(long)]
    pub(crate) profile: bool,
    #[arg(long, value_enum, default_value_t = BackendChoice::Auto, help = BACKEND_HELP)]
    pub(crate) backend: BackendChoice,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Context length in tokens [default: as long as needed]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(OptionRange::CONTEXT), allow_negative_numbers = true)]
    pub(crate) context: Option<u32>,
    #[command(flatten)]
    pub(crate) towers: TowerArguments,
    #[command(flatten)]
    pub(crate) memory: MemoryArguments,
}

/// How long a sound may be. A shorter one has no frame.
const SECONDS: OptionRange = OptionRange::Number { least: 0.02, most: MAX_SECONDS as f32 };

/// How far apart logits may be. A distance is never negative.
const TOLERANCE: OptionRange = OptionRange::Number { least: 0.0, most: f32::MAX };

#[derive(Debug, Args)]
pub(crate) struct ParityArguments {
    #[arg(help = MODEL_HELP)]
    pub(crate) model: OsString,
    /// Compare the GPU with the CPU, or with an Ollama or llama.cpp server at this URL
    #[arg(long, value_name = "cpu|URL", default_value = "cpu", value_parser = against)]
    pub(crate) against: Against,
    /// The model's name on the Ollama server [default: its name in the store]
    #[arg(long = "model", value_name = "NAME", id = "server_model")]
    pub(crate) server_model: Option<String>,
    /// File with one prompt per line, or a JSON list of prompts; - for standard input [default: five built-in prompts]
    #[arg(long, value_name = "FILE")]
    pub(crate) prompts: Option<PathBuf>,
    /// Compare at most this many tokens per prompt
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u32).range(1..),
          allow_negative_numbers = true)]
    pub(crate) max_tokens: u32,
    /// If the two best logits are closer than this, either token counts as right
    #[arg(long, value_name = "T", default_value_t = 0.05, value_parser = number(TOLERANCE),
          allow_negative_numbers = true)]
    pub(crate) tolerance: f32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) memory: MemoryArguments,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Also list limits, kernels and every self-test
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What the GPU is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Against {
    Cpu,
    /// A server's address, without a slash at the end.
    Server(String),
}

fn against(text: &str) -> Result<Against, String> {
    match text {
        "cpu" => Ok(Against::Cpu),
        url if url.starts_with("http://") || url.starts_with("https://") => {
            Ok(Against::Server(url.trim_end_matches('/').to_owned()))
        }
        _ => Err("expected `cpu` or a URL that begins with http:// or https://".to_owned()),
    }
}
