//! Arguments of the commands for models in the Ollama store and for running servers.

use std::ffi::OsString;

use clap::Args;

use super::{MODEL_HELP, values::port};

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// List only these models
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Read every file and compare it with its SHA-256 digest
    #[arg(long)]
    pub(crate) verify: bool,
    /// Print JSON in the format of Ollama's /api/tags
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("part").args(["license", "parameters", "system", "template"])))]
pub(crate) struct ShowArguments {
    #[arg(help = MODEL_HELP)]
    pub(crate) model: OsString,
    /// Print only the licence, in full
    #[arg(long, visible_alias = "licence")]
    pub(crate) license: bool,
    /// Print only the default parameters
    #[arg(long)]
    pub(crate) parameters: bool,
    /// Print only the system prompt
    #[arg(long)]
    pub(crate) system: bool,
    /// Print only the prompt template
    #[arg(long)]
    pub(crate) template: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "part")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PsArguments {
    /// Look only at this port [default: 11435 to 11454, where `rullama serve` listens by default]
    #[arg(long, value_name = "PORT", value_parser = port, allow_negative_numbers = true)]
    pub(crate) port: Option<u16>,
    /// Print JSON: {"servers": [{"url", "version", "models"}]}
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RmArguments {
    /// The models to delete, as `rullama list` shows them
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// Delete without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// Arguments of Ollama's commands that rullama does not have.
#[derive(Debug, Args)]
pub(crate) struct OllamaArguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) rest: Vec<String>,
}
