//! What can be said on the command line.

use std::{ffi::OsString, net::IpAddr, path::PathBuf};

use clap::{
    Args, Parser, Subcommand, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
    value_parser,
};
use rullama_convert::TensorRule;
use rullama_gpu::Residency;
use rullama_synth::{LARGEST_VOCABULARY, Mix, Preset, SMALLEST_VOCABULARY};

const MODEL_HELP: &str = "A GGUF file, the name of a model in the Ollama store such as gemma4:e2b, \
                          or the address of a file that ends in .gguf";

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
    /// Prints the address on the first line of standard output. Nothing can be read but the app and the models, and
    /// nobody but this machine can connect, unless --lan or --host say otherwise. The addresses:
    ///
    /// GET /  the app; addresses without a dot that are no file are its first page
    ///
    /// GET /api/models  {"models": [{"name", "bytes", "sha256"?, "url", "family", "parameters", "format",
    /// "projector"?: {"bytes", "sha256", "url"}}]}, by name
    ///
    /// GET, HEAD /models/NAME, /projectors/NAME  the file, or by Range a part of it
    ///
    /// POST /api/log  {"tag", "text"}, or plain text with ?tag=TAG: keeps what a page reports. At most 16 KiB each;
    /// the newest 2,000 messages or 4 MiB are kept
    ///
    /// GET /api/log?tag=TAG&since=N  {"messages": [{"sequence", "time", "tag", "text"}], "latest"}
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
          value_parser = value_parser!(u32).range(1..=512))]
    pub(crate) rows: u32,
    /// Tokens read before that step
    #[arg(long, value_name = "P", default_value_t = 0, requires = "plan")]
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
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Size of the vocabulary [default: 262144; 2048 for tiny presets]
    #[arg(long, value_name = "TOKENS",
          value_parser = value_parser!(u32).range(i64::from(SMALLEST_VOCABULARY)..=i64::from(LARGEST_VOCABULARY)))]
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

/// How a model is loaded.
#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    /// Tokens the conversation may have [default: as many as the model was made for; at most 4096 on the GPU]
    #[arg(long, value_name = "N")]
    pub(crate) context: Option<u32>,
    #[command(flatten)]
    pub(crate) memory: MemoryArguments,
}

/// What memory is used for.
#[derive(Debug, Args)]
pub(crate) struct MemoryArguments {
    /// How keys and values are kept [default: f32 on the CPU, f16 on the GPU]
    #[arg(long, value_enum)]
    pub(crate) kv: Option<KvChoice>,
    /// MiB of weights that are held in memory on the CPU; the others are read again for each token
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    pub(crate) weight_memory: u64,
    /// MiB of the GPU's memory that the model and its conversation may take [default: all]
    #[arg(long, value_name = "MIB")]
    pub(crate) gpu_memory: Option<u64>,
    /// Where weights live on the GPU backend: all on the GPU; embedding tables in the file, read by rows; or also
    /// experts in the file, read when they are needed [default: the first that fits]
    #[arg(long, value_parser = residency_parser())]
    pub(crate) residency: Option<Residency>,
}

fn residency_parser() -> impl TypedValueParser<Value = Residency> {
    PossibleValuesParser::new(Residency::ALL.map(Residency::as_str)).try_map(|name| name.parse::<Residency>())
}

/// How tokens are chosen. What is not given has the model's own default, or else Ollama's.
#[derive(Debug, Args)]
pub(crate) struct SamplingArguments {
    /// Most tokens to generate; -1 for no limit but the context [default: -1]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) max_tokens: Option<i64>,
    /// 0 always takes the most probable token [default: 1]
    #[arg(long, value_name = "T", value_parser = finite, allow_negative_numbers = true)]
    pub(crate) temperature: Option<f32>,
    /// Choose among the K most probable tokens; 0 for all [default: 64]
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    pub(crate) top_k: Option<i64>,
    /// Choose among the most probable tokens that together have probability P [default: 0.95]
    #[arg(long, value_name = "P", value_parser = finite, allow_negative_numbers = true)]
    pub(crate) top_p: Option<f32>,
    /// Drop tokens less probable than M times the most probable one [default: 0]
    #[arg(long, value_name = "M", value_parser = finite, allow_negative_numbers = true)]
    pub(crate) min_p: Option<f32>,
    /// Make tokens that occurred lately less probable; 1 for not at all [default: 1]
    #[arg(long, value_name = "R", value_parser = finite, allow_negative_numbers = true)]
    pub(crate) repeat_penalty: Option<f32>,
    /// The same seed gives the same text; -1 for another each time [default: -1]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
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
    #[arg(help = MODEL_HELP)]
    pub(crate) model: OsString,
    /// Whether the model is asked to think first [default: on]
    #[arg(long, value_name = "on|off", hide_possible_values = true)]
    pub(crate) think: Option<Switch>,
    /// Show the speed of each reply
    #[arg(long)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) sampling: SamplingArguments,
    /// What computes
    #[arg(long, value_enum, default_value_t = BackendChoice::Gpu)]
    pub(crate) backend: BackendChoice,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// The address to listen on [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", value_parser = host, conflicts_with = "lan")]
    pub(crate) host: Option<IpAddr>,
    /// The port to listen on; 0 for any that is free [default: 11435, or the next that is free]
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Let other machines on the network connect, and show a QR code for phones
    #[arg(long)]
    pub(crate) lan: bool,
    /// Use TLS, without which browsers on other machines have no WebGPU
    #[arg(long)]
    pub(crate) https: bool,
    /// The folder of the certificate [default: rullama in the folder of this user's data]
    #[arg(long, value_name = "DIR", requires = "https")]
    pub(crate) certificate: Option<PathBuf>,
    /// The folder of the built web app [default: packages/app/dist of the project, or app beside the program]
    #[arg(long, value_name = "DIR")]
    pub(crate) app: Option<PathBuf>,
    /// A folder with models as Ollama keeps them; may be given several times [default: that of Ollama]
    #[arg(long, value_name = "DIR")]
    pub(crate) models: Vec<PathBuf>,
    /// A GGUF file to offer as well; may be given several times
    #[arg(long, value_name = "FILE")]
    pub(crate) model: Vec<PathBuf>,
    /// An origin whose pages may read the models too, such as http://localhost:5173, or * for all; may be given
    /// several times
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    pub(crate) cors: Vec<String>,
    /// Add what pages report to this file, as lines of JSON, until it has 16 MiB
    #[arg(long, value_name = "F")]
    pub(crate) log_file: Option<PathBuf>,
    /// Open the app in the browser
    #[arg(long)]
    pub(crate) open: bool,
}

/// An address of this machine.
fn host(text: &str) -> Result<IpAddr, String> {
    match text {
        "localhost" => Ok(IpAddr::from([127, 0, 0, 1])),
        _ => text.parse().map_err(|_| "an address such as 127.0.0.1 was expected".to_owned()),
    }
}

/// An origin as browsers write it: a scheme and a host, perhaps a port, and nothing behind.
fn origin(text: &str) -> Result<String, String> {
    let bare = text.strip_suffix('/').unwrap_or(text);
    let host = bare.split_once("://").map_or("", |(_, host)| host);
    if bare == "*"
        || (!host.is_empty() && !host.contains('/') && bare.bytes().all(|byte| byte.is_ascii_graphic()))
    {
        return Ok(bare.to_ascii_lowercase());
    }
    Err("an origin such as http://localhost:5173 was expected".to_owned())
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("input").required(true).args(["prompt", "ids", "messages"])))]
pub(crate) struct GenerateArguments {
    #[arg(help = MODEL_HELP)]
    pub(crate) model: OsString,
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
    /// What computes
    #[arg(long, value_enum, default_value_t = BackendChoice::Gpu)]
    pub(crate) backend: BackendChoice,
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

#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    #[arg(help = MODEL_HELP)]
    pub(crate) model: OsString,
    /// Tokens of the prompts; 0 for none
    #[arg(long, value_name = "N", default_value_t = 512)]
    pub(crate) prompt: u32,
    /// Tokens to generate; 0 for none
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub(crate) generate: u32,
    /// Tokens read before, separated by commas; each is measured
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "0,4096")]
    pub(crate) depth: Vec<u32>,
    /// Repetitions
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// Also show the time of each kernel, told by the GPU's own clock
    #[arg(long)]
    pub(crate) profile: bool,
    /// What computes
    #[arg(long, value_enum, default_value_t = BackendChoice::Gpu)]
    pub(crate) backend: BackendChoice,
    /// Tokens a conversation may have [default: as many as are needed]
    #[arg(long, value_name = "N")]
    pub(crate) context: Option<u32>,
    #[command(flatten)]
    pub(crate) memory: MemoryArguments,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

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
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u32).range(1..))]
    pub(crate) max_tokens: u32,
    /// How close the two best logits may be for either of them to be right
    #[arg(long, value_name = "T", default_value_t = 0.05, value_parser = finite)]
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

/// Token ids.
#[derive(Debug, Clone)]
pub(crate) struct IdList(pub(crate) Vec<u32>);

/// Reads ids with commas between them; spaces, and a comma at the end, do no harm.
fn id_list(text: &str) -> Result<IdList, String> {
    let ids = text.split(',').map(str::trim).filter(|id| !id.is_empty());
    let ids = ids.map(|id| id.parse().map_err(|_| format!("`{id}` is not a token id")));
    ids.collect::<Result<_, _>>().map(IdList)
}

/// A number, and no infinity or worse.
fn finite(text: &str) -> Result<f32, String> {
    let number: f32 = text.parse().map_err(|_| "a number was expected".to_owned())?;
    if number.is_finite() { Ok(number) } else { Err("a finite number was expected".to_owned()) }
}

/// What computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackendChoice {
    /// The CPU reference: exact and slow
    Cpu,
    /// The GPU, through Vulkan, Metal or DX12
    Gpu,
}

/// How keys and values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KvChoice {
    /// Exactly
    F32,
    /// In half precision
    F16,
    /// In eight bits
    Q8,
}

/// `on` or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}
