//! The command line: every command with its arguments and its help.

mod files;
mod measuring;
mod media;
mod replies;
mod serving;
mod store;
mod values;

use clap::{Parser, Subcommand};

pub(crate) use files::*;
pub(crate) use measuring::*;
pub(crate) use media::*;
pub(crate) use replies::*;
pub(crate) use serving::*;
pub(crate) use store::*;
pub(crate) use values::{BackendChoice, ImageSize, Switch};

const MODEL_HELP: &str = "A GGUF file, a model from the Ollama store such as gemma4:e2b, the URL of a .gguf file, \
                          or demo, the built-in model";

/// For commands that use the demo model if no model is given.
fn optional_model_help() -> String {
    format!("{MODEL_HELP} [default: demo]")
}

const EXAMPLES: &str = "\
Examples:
  rullama run                                    Chat with the built-in demo model
  rullama run gemma4:e2b \"Why is the sky blue?\"  Ask one question
  rullama serve --open                           Open the web app in your browser
  rullama list                                   Show the models you have

`rullama COMMAND --help` describes a command in detail.";

const ENDPOINTS: &str = r#"Endpoints:
  GET /                     The app. A path that is not a file and has no dot shows its start page
  GET /api/models           {"models": [{"name", "bytes", "sha256"?, "url", "family", "parameters",
                            "format", "projector"?: {"bytes", "sha256", "url"}}]}, sorted by name
  GET, HEAD /models/NAME    A model's file; supports Range
  GET, HEAD /projectors/NAME
                            A model's vision and audio towers, if they are in a separate file
  POST /api/log             {"tag", "text"}, or plain text with ?tag=TAG: stores a message from a
                            page. A message has at most 16 KiB; the newest 2,000 messages or 4 MiB
                            are kept
  GET /api/log?tag=TAG&since=N
                            {"messages": [{"sequence", "time", "tag", "text"}], "latest"}
  GET /api/health           {"status": "ok", "version"}
  GET /certificate.crt      With --https: the certificate for a phone to trust

With --lan or --host, /api/log needs the token that the server prints: as ?token=TOKEN or as
Authorization: Bearer TOKEN. Errors are {"error": {"code", "message"}}. See
docs/guide/serving.md for details."#;

const BENCH_JSON: &str = r#"JSON:
  {"model", "backend", "device", "load_ms", "bandwidth_bytes_per_s",
   "results": [{"depth", "prompt_tokens", "prompt_tps": {"mean", "stddev"},
                "generate_tokens", "generate_tps": {"mean", "stddev"}, "first_token_ms",
                "dispatches_per_token", "weight_bytes_per_token", "bandwidth_share"}],
   "image": {"width", "height", "budget", "rows", "encode_ms", "encode_ms_all", "first_ms"},
   "audio": {"seconds", "rows", "encode_ms", "encode_ms_all", "first_ms"},
   "profile": [{"depth", "rows", "seconds",
                "kernels": [{"kernel", "count", "seconds", "weight_bytes"}]}]}

Values that do not apply are null. "profile", "image" and "audio" are present
with --profile, --image and --audio; "encode_ms" is the median, and "first_ms" includes the weights."#;

const PARITY_JSON: &str = r#"JSON:
  {"model", "device", "against", "compared": "tokens" or "text", "tolerance", "verdict",
   "prompts": [{"prompt", "prompt_tokens", "verdict", "tokens",
                "first_difference": {"index", "ours": {"id", "text"},
                                     "reference": {"id", "text"}, "margin"},
                "logit_distance", "logprob_distance", "positions", "positions_different",
                "positions_outside_margin", "ours", "reference"}]}

Unknown values are null."#;

const DOCTOR_JSON: &str = r#"JSON:
  {"ok", "adapter": {"name", "backend", "software"},
   "limits": {"largest_binding", "largest_buffer", "workgroup_memory"},
   "features": {"subgroups", "half_precision", "timestamps", "matrices"},
   "kernels": [{"step", "kernel", "count"}],
   "self_tests": [{"name", "passed", "detail"}],
   "fallbacks": ["..."], "bandwidth_bytes_per_s"}

"fallbacks" says which features are not used because their test failed; "kernels" are those that
models then use. Without a GPU:
  {"ok": false, "adapter": null, "problem": {"code", "message"}}"#;

/// Run Google's Gemma 4 models on your own machine
#[derive(Debug, Parser)]
#[command(name = "rullama", version, max_term_width = 100, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Chat with a model, or ask it one question
    ///
    /// Without PROMPT this starts a chat; type /help for its commands. With PROMPT it prints one reply and exits. Text that
    /// is piped in follows PROMPT, as in `cat FILE | rullama run MODEL "Summarise this:"`.
    ///
    /// A terminal shows what the model thinks before it answers; a pipe or a file gets the answer only.
    Run(RunArguments),
    /// Print a reply to a prompt
    ///
    /// A single argument is the model if it names one: a file, a URL, demo, a model of the Ollama store, or anything
    /// written like NAME:TAG or PATH.gguf. Otherwise it is the prompt, and the demo model answers. With --prompt, --ids
    /// or --messages a single argument is always the model; with --model it is always the prompt.
    ///
    /// If no prompt is given, it is read from standard input, unless that is a terminal. A prompt of - also means
    /// standard input. Text that is piped in together with a prompt follows the prompt on a new line. If text is piped in
    /// and the only argument is one word, that word is the model.
    ///
    /// A terminal shows what the model thinks before it answers; a pipe or a file gets the answer only, and --json has both.
    #[command(after_help = GENERATE_EXAMPLES)]
    Generate(GenerateArguments),
    /// Serve the web app and your models to browsers
    ///
    /// Models run in the browser; the server only sends files. It offers the models of the Ollama store, files given with
    /// --model, and the demo model, and nothing else on this machine. Only this machine can connect unless you use --lan
    /// or --host. The first line of standard output is the server's address.
    #[command(after_long_help = ENDPOINTS)]
    Serve(ServeArguments),
    /// List the models in the Ollama store
    ///
    /// rullama uses the models that Ollama has downloaded. It looks in the folder that OLLAMA_MODELS names, or else in
    /// .ollama/models in your home folder, or else, on Linux, in /usr/share/ollama/.ollama/models, where Ollama's system
    /// service keeps its models.
    #[command(visible_aliases = ["ls", "models"])]
    List(ListArguments),
    /// Show a model's size, context length, settings and licence
    Show(ShowArguments),
    /// List running rullama servers
    ///
    /// rullama keeps no model loaded in the background: a model runs in the browser tab, or in the `rullama run` or
    /// `rullama generate` process, that loaded it. This command looks for `rullama serve` on this machine.
    Ps(PsArguments),
    /// Delete models from the Ollama store
    ///
    /// Deletes the model's manifest and the files that no other model uses, as `ollama rm` does.
    Rm(RmArguments),
    /// Show the contents of a model file: architecture, formats, tensors, metadata
    Inspect(InspectArguments),
    /// Convert text to token ids
    Tokenize(TokenizeArguments),
    /// Convert token ids to text
    Detokenize(DetokenizeArguments),
    /// Show the prompt that a conversation is turned into
    Render(RenderArguments),
    /// Write the logits for a prompt to a NumPy file
    ///
    /// The prompt is given as token ids, or as messages, which may attach images and sounds: "images" and "audio" are lists
    /// of paths, data: URLs or base64. Paths are relative to the working directory.
    Logits(LogitsArguments),
    /// Write what a model reads of an image or a sound to a NumPy file
    ///
    /// The model's vision or audio tower turns an image or a sound into rows, each of which takes the place of a token in a
    /// prompt. The text model is not loaded.
    Encode(EncodeArguments),
    /// Measure how fast a model runs
    ///
    /// For each depth, reads a prompt of random tokens and generates tokens after it. The depth is the number of tokens
    /// already in the context; reading those is not timed. Each result is the mean and standard deviation over the
    /// repetitions, after one warm-up. The share of bandwidth compares the bytes of weights read per token with the speed
    /// at which a kernel reads a large buffer.
    #[command(after_long_help = BENCH_JSON)]
    Bench(BenchArguments),
    /// Compare the GPU's results with the CPU, Ollama or llama.cpp
    ///
    /// Continues each prompt greedily on both sides. The CPU stores keys and values as f32 unless --kv sets the format
    /// for both. The verdict is `equal`; `equal within margin` if tokens differ only where the other side's two best
    /// tokens are closer than the tolerance; or `different`, which sets the exit status to 1.
    ///
    /// Distances are the largest over all positions, with both sides reading the same tokens. Servers do not return
    /// logits: llama.cpp returns tokens and log-probabilities, Ollama returns text and sometimes log-probabilities.
    #[command(after_long_help = PARITY_JSON)]
    Parity(ParityArguments),
    /// Check whether rullama can use this machine's GPU
    ///
    /// The first line is the verdict. The exit status is 1 if there is no GPU or a kernel fails its test.
    #[command(after_long_help = DOCTOR_JSON)]
    Doctor(DoctorArguments),
    /// Convert a Hugging Face checkpoint of Gemma 4 to a GGUF file
    ///
    /// The folder must contain config.json, tokenizer.json and model.safetensors, or several safetensors files with
    /// model.safetensors.index.json. tokenizer_config.json, chat_template.jinja, generation_config.json and
    /// preprocessor_config.json are used if present. The text model and the vision and audio towers go into one file,
    /// with the tensor names that Ollama uses. Weights are streamed, so memory use does not grow with the checkpoint.
    /// All tensors are checked against config.json first. OUTPUT.gguf appears only when it is complete.
    ///
    /// If a row's length is not a multiple of a format's block, another format is used: q5_0 for q4_k, q8_0 for q6_k, or
    /// else f16.
    Convert(ConvertArguments),
    /// Write a model with random weights, for tests and benchmarks
    ///
    /// The file has the tensor names, shapes, formats, metadata and tokenizer layout of a released model. Its
    /// replies are nonsense. The tiny presets have the same structure in a few megabytes. The same arguments always give the same
    /// bytes.
    Synth(SynthArguments),
    #[command(hide = true)]
    Pull(OllamaArguments),
    #[command(hide = true)]
    Stop(OllamaArguments),
    #[command(hide = true)]
    Create(OllamaArguments),
    #[command(hide = true)]
    Cp(OllamaArguments),
}

impl Command {
    /// Whether the command has `--backend`.
    pub(crate) fn has_backend(&self) -> bool {
        matches!(self, Self::Run(_) | Self::Generate(_) | Self::Logits(_) | Self::Encode(_) | Self::Bench(_))
    }

    /// Whether the command may open the GPU.
    pub(crate) fn may_use_gpu(&self) -> bool {
        match self {
            Self::Inspect(arguments) => arguments.plan,
            Self::Parity(_) | Self::Doctor(_) => true,
            _ => self.has_backend(),
        }
    }
}
