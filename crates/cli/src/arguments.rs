//! What can be said on the command line.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};

const MODEL_HELP: &str = "A GGUF file, the name of a model in the Ollama store such as gemma4:e2b, \
                          or the address of a GGUF file";

/// Run Google's Gemma 4 models on your own machine.
#[derive(Debug, Parser)]
#[command(name = "rullama", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the models in the Ollama store
    ///
    /// The store is looked for where Ollama keeps it: in the folder that OLLAMA_MODELS names, else in
    /// .ollama/models below the home folder.
    Models(ModelsArguments),
    /// Show what a model file holds: architecture, size, formats, tensors, metadata
    Inspect(InspectArguments),
    /// Turn text into token ids
    Tokenize(TokenizeArguments),
    /// Turn token ids back into text
    Detokenize(DetokenizeArguments),
    /// Show the prompt that a conversation becomes
    Render(RenderArguments),
}

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
    #[arg(long, required = true, value_delimiter = ',', num_args = 1..)]
    pub(crate) ids: Vec<u32>,
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

/// `on` or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}
