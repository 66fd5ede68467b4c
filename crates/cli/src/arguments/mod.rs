//! What can be said on the command line.

mod files;
mod measuring;
mod replies;
mod serving;
mod values;

use clap::{Parser, Subcommand};

pub(crate) use files::*;
pub(crate) use measuring::*;
pub(crate) use replies::*;
pub(crate) use serving::*;
pub(crate) use values::{BackendChoice, Switch};

const MODEL_HELP: &str = "A GGUF file, the name of a model in the Ollama store such as gemma4:e2b, \
                          the address of a file that ends in .gguf, or demo, the model that comes with rullama";

/// For commands that can do without one.
fn optional_model_help() -> String {
    format!("{MODEL_HELP} [default: demo]")
}

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
    /// Chat with a model in the terminal
    Run(RunArguments),
    /// Serve the web app and the models of this machine to browsers
    ///
    /// The models are those of the Ollama store, files given by --model, and the demo model that comes with rullama.
    /// Prints the address on the first line of standard output. Nothing can be read but the app and the models, and
    /// nobody but this machine can connect, unless --lan or --host say otherwise. The addresses:
    ///
    /// GET /  the app; addresses without a dot that are no file lead to its first page
    ///
    /// GET /api/models  {"models": [{"name", "bytes", "sha256"?, "url", "family", "parameters", "format",
    /// "projector"?: {"bytes", "sha256", "url"}}]}, by name
    ///
    /// GET, HEAD /models/NAME, /projectors/NAME  the file, or by Range a part of it
    ///
    /// POST /api/log  {"tag", "text"}, or plain text with ?tag=TAG: keeps what a page reports. At most 16 KiB each;
    /// the newest 2,000 messages or 4 MiB are kept
    ///
    /// GET /api/log?tag=TAG&since=N  {"messages": [{"sequence", "time", "tag", "text"}], "latest"}. With --lan or --host both
    /// need the token that is printed: in the address (?token=TOKEN) or as Authorization: Bearer TOKEN
    ///
    /// GET /api/health  {"status": "ok", "version"}
    ///
    /// GET /certificate.crt  with --https: what a phone has to trust
    ///
    /// Errors are {"error": {"code", "message"}}. docs/guide/serving.md says more.
    Serve(ServeArguments),
    /// Continue a prompt
    Generate(GenerateArguments),
    /// Write the logits of a prompt to a NumPy file
    Logits(LogitsArguments),
    /// Measure how fast a model runs
    ///
    /// Reads prompts of random tokens and generates after them, at each depth: that many tokens are read before,
    /// not timed. Every figure is the mean over the repetitions, after one that does not count, with the standard
    /// deviation. The time to the first token is that of a whole prompt. The share of bandwidth is what the weights
    /// that each token reads take of the speed at which a kernel reads a large buffer. With --json:
    ///
    /// {"model", "backend", "device", "load_ms", "bandwidth_bytes_per_s", "results": [{"depth", "prompt_tokens",
    /// "prompt_tps": {"mean", "stddev"}, "generate_tokens", "generate_tps": {"mean", "stddev"}, "first_token_ms",
    /// "dispatches_per_token", "weight_bytes_per_token", "bandwidth_share"}], "profile": [{"depth", "rows",
    /// "seconds", "kernels": [{"kernel", "count", "seconds", "weight_bytes"}]}]}
    ///
    /// What does not apply is null, and "profile" is there if it was asked for.
    Bench(BenchArguments),
    /// Compare what the GPU computes with the CPU, or with Ollama or llama.cpp
    ///
    /// Continues each prompt greedily on both sides; the CPU keeps keys and values exactly, unless --kv says how both do. A verdict is `equal`, `equal within margin` where tokens differ
    /// only at places where the other side's two best tokens are closer than the tolerance, or `different`, which
    /// makes the exit status 1. With --json:
    ///
    /// {"model", "device", "against", "compared": "tokens" or "text", "tolerance", "verdict", "prompts": [{"prompt",
    /// "prompt_tokens", "verdict", "tokens", "first_difference": {"index", "ours": {"id", "text"}, "reference":
    /// {"id", "text"}, "margin"}, "logit_distance", "logprob_distance", "positions", "positions_different",
    /// "positions_outside_margin", "ours", "reference"}]}
    ///
    /// Distances are the largest of all positions, both sides reading the other side's tokens. A server gives no
    /// logits: llama.cpp tells tokens and log-probabilities, Ollama text and perhaps log-probabilities. What is
    /// not known is null.
    Parity(ParityArguments),
    /// Show what the GPU of this machine can do, and whether it computes correctly
    ///
    /// The exit status is 1 if there is no GPU or a test fails. With --json:
    ///
    /// {"ok", "adapter": {"name", "backend", "software"}, "limits": {"largest_binding", "largest_buffer",
    /// "workgroup_memory"}, "features": {"subgroups", "half_precision", "timestamps", "matrices"}, "kernels": [{"step",
    /// "kernel", "count"}], "self_tests": [{"name", "passed", "detail"}], "fallbacks": ["..."],
    /// "bandwidth_bytes_per_s"}
    ///
    /// Fallbacks say what is done in a safer way because a test failed, and the kernels are those that models then run.
    /// Where there is no GPU: {"ok": false, "adapter": null, "problem": {"code", "message"}}
    Doctor(DoctorArguments),
    /// Write a model with random weights, for tests and measurements
    ///
    /// The file has the names, shapes, formats, metadata and tokenizer layout of a released model, and
    /// weights that keep its numbers in sane ranges; the text it writes is noise. The tiny presets have the
    /// same structure in a few megabytes. The same arguments always give the same bytes.
    Synth(SynthArguments),
    /// Convert a Hugging Face checkpoint of Gemma 4 to a GGUF file
    ///
    /// The folder holds config.json, model.safetensors (or several files with model.safetensors.index.json),
    /// tokenizer.json and, if there are any, tokenizer_config.json, chat_template.jinja, generation_config.json and
    /// preprocessor_config.json. The decoder and the towers for images and sound go into one file, named as in the
    /// files that Ollama publishes. Weights are streamed: memory does not grow with the checkpoint. Every tensor is
    /// checked against config.json first, and the file appears under its name when it is whole.
    ///
    /// Rows that are no whole blocks of a format get another: q5_0 for q4_k, q8_0 for q6_k, or else f16.
    Convert(ConvertArguments),
}

impl Command {
    /// Whether it has `--backend`.
    pub(crate) fn has_backend(&self) -> bool {
        matches!(self, Self::Run(_) | Self::Generate(_) | Self::Logits(_) | Self::Bench(_))
    }
}
