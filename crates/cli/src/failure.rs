//! What the user sees when a command fails: the facts, from the libraries, and a hint what to do.

use std::{error::Error, fmt, io};

use rullama_chat::ChatError;
use rullama_convert::ConvertError;
use rullama_engine::{EngineError, OptionError};
use rullama_gemma::GemmaError;
use rullama_gguf::{HeaderError, ModelError, SourceError, error_chain, ollama::StoreError};
use rullama_gpu::{Bound, GpuError};
use rullama_media::MediaError;
use rullama_tokenizer::TokenizerError;

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    cause: Option<Box<dyn Error + Send + Sync>>,
    hint: Option<String>,
    /// A second hint, for commands that have `--backend`.
    backend_hint: Option<&'static str>,
    /// The library's code for the error; empty for failures of this program.
    code: &'static str,
    status: u8,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), cause: None, hint: None, backend_hint: None, code: "", status: 1 }
    }

    pub(crate) fn caused_by(mut self, cause: impl Error + Send + Sync + 'static) -> Self {
        self.cause = Some(Box::new(cause));
        self
    }

    /// Sets the hint, and drops the ones before.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        (self.hint, self.backend_hint) = (Some(hint.into()), None);
        self
    }

    /// Drops the hint about `--backend`, for commands that do not have it.
    pub(crate) fn without_backend(mut self) -> Self {
        self.backend_hint = None;
        self
    }

    /// The message, without causes and hints.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Whether the reader of our output went away, as `head` does. That is not an error.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        let cause = self.cause.as_deref().and_then(|cause| cause.downcast_ref::<io::Error>());
        cause.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Makes this an error of the command line, with exit status 2.
    pub(crate) fn usage(mut self) -> Self {
        self.status = 2;
        self
    }

    /// The exit status: 2 for usage, 1 for everything else.
    pub(crate) fn status(&self) -> u8 {
        self.status
    }

    /// A failure from a library's error, with a hint.
    fn of(error: impl Error + 'static, hint: Option<String>) -> Self {
        Self { hint, ..Self::new(error_chain(&error)) }
    }

    /// A failure about an image or a sound; `label` is what the user calls it.
    pub(crate) fn of_medium(label: &str, error: &EngineError) -> Self {
        let hint = match error {
            EngineError::Media(MediaError::TooManyPixels { .. } | MediaError::ImageMemory { .. }) => {
                Some("make the image smaller".to_owned())
            }
            EngineError::Media(MediaError::SoundTooLong) => Some("cut the sound into parts".to_owned()),
            EngineError::Media(MediaError::UnsupportedSound { .. }) => {
                Some("convert the sound to WAV or FLAC".to_owned())
            }
            _ => None,
        };
        let message = format!("{label} can't be used: {}", error_chain(error));
        Self { hint, code: error.code(), ..Self::new(message) }
    }

    /// A failure of a step, with the hints for its code.
    fn of_step(error: impl Error + 'static, code: &'static str) -> Self {
        let (hint, backend_hint) = step_hints(code);
        Self { backend_hint, code, ..Self::of(error, hint.map(str::to_owned)) }
    }

    /// Replaces the hint by one for `bench`, where the context length follows from what is measured unless it is given.
    pub(crate) fn of_measuring(self, context_given: bool, memory_given: bool) -> Self {
        let hint = match (self.code.split_once('.'), context_given) {
            (Some(("context", "overflow")), true) => {
                "leave out --context to use as much as needed, or give a larger one"
            }
            (Some(("context", _)), false) => "use a smaller --depth, --prompt or --generate",
            // If not even the shortest context fits, measuring less would not help.
            (Some(("memory", _)), _) if self.hint.as_deref() == Some(MORE_MEMORY) => return self,
            (Some(("memory", _)), false) if memory_given => {
                "use a larger --gpu-memory, a smaller --depth, or --kv q8"
            }
            (Some(("memory", _)), false) => "use a smaller --depth, or --kv q8",
            _ => return self,
        };
        Self { hint: Some(hint.to_owned()), ..self }
    }

    /// Replaces the hint by one for `parity`, where the context length follows from what is compared.
    pub(crate) fn of_comparing(self, memory_given: bool) -> Self {
        let hint = match self.code.split_once('.') {
            Some(("context", _)) => "use a smaller --max-tokens, or shorter --prompts",
            Some(("memory", _)) if self.hint.as_deref() == Some(MORE_MEMORY) => return self,
            Some(("memory", _)) if memory_given => {
                "use a larger --gpu-memory, a smaller --max-tokens, shorter --prompts, or --kv q8"
            }
            Some(("memory", _)) => "use a smaller --max-tokens, shorter --prompts, or --kv q8",
            _ => return self,
        };
        Self { hint: Some(hint.to_owned()), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut message = self.message.clone();
        if let Some(cause) = &self.cause {
            message = format!("{message}: {}", error_chain(cause.as_ref()));
        }
        // Indented, so that a file name with a line feed in it can't look like a hint of ours.
        writeln!(f, "error: {}", message.replace('\n', "\n       "))?;
        let hints: Vec<&str> = self.hint.as_deref().into_iter().chain(self.backend_hint).collect();
        if !hints.is_empty() {
            writeln!(f, "\nhint: {}", hints.join(", "))?;
        }
        Ok(())
    }
}

/// Every other file is written with its name at hand, so this is standard output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new("can't write to standard output").caused_by(error)
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        let hint = source_hint(&error);
        Self::of(error, hint)
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        if let ModelError::Header { name, source: HeaderError::NotGguf { found } } = &error {
            let hint = header_hint(&HeaderError::NotGguf { found: found.clone() });
            return Self { hint, ..Self::new(not_gguf(name, found)) };
        }
        let hint = match &error {
            ModelError::Header { source, .. } => header_hint(source),
            ModelError::Source(error) => source_hint(error),
            ModelError::PartCount { .. } => Some(
                "give the path of one part; rullama finds the others in the same folder by their names"
                    .to_owned(),
            ),
            _ => None,
        };
        Self::of(error, hint)
    }
}

/// What a file is that does not begin with `GGUF`, as far as its first bytes tell.
fn not_gguf(name: &str, found: &[u8]) -> String {
    let looks_like = match found {
        [] => return format!("`{name}` is empty"),
        // The magic number itself is incomplete.
        _ if found.len() < 4 && b"GGUF".starts_with(found) => {
            return format!(
                "`{name}` is cut off: it has {} of the first 4 bytes of a GGUF file",
                found.len()
            );
        }
        [b'%', b'P', b'D', b'F', ..] => "a PDF",
        [b'P', b'K', ..] => "a ZIP archive, or a PyTorch checkpoint",
        [0x1f, 0x8b, ..] => "a gzip archive",
        [b'<', ..] => "a web page",
        [b'{' | b'[', ..] => "JSON",
        b"ggml" | b"ggjt" | b"lmgg" | b"tjgg" => "an old ggml model",
        b"vers" => "a Git LFS pointer; `git lfs pull` downloads the file itself",
        _ => return format!("`{name}` isn't a GGUF file"),
    };
    format!("`{name}` isn't a GGUF file; it looks like {looks_like}")
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let hint = store_hint(&error);
        Self::of(error, hint)
    }
}

impl From<TokenizerError> for Failure {
    fn from(error: TokenizerError) -> Self {
        let hint = tokenizer_hint(&error);
        Self::of(error, Some(hint))
    }
}

impl From<ChatError> for Failure {
    fn from(error: ChatError) -> Self {
        Self::of(error, Some(CHAT_HINT.to_owned()))
    }
}

impl From<ConvertError> for Failure {
    fn from(error: ConvertError) -> Self {
        let hint = convert_hint(&error);
        Self::of(error, hint.map(str::to_owned))
    }
}

impl From<OptionError> for Failure {
    fn from(error: OptionError) -> Self {
        Self::of(error, Some("`rullama generate --help` lists the options and their ranges".to_owned()))
    }
}

impl From<GpuError> for Failure {
    fn from(error: GpuError) -> Self {
        match &error {
            GpuError::NoAdapter { .. } => {
                // The reason lists graphics interfaces and their internal errors, which don't help users.
                Self {
                    backend_hint: Some(NO_GPU_BACKEND_HINT),
                    ..Self::new("no GPU found").hint(NO_GPU_HINT)
                }
            }
            GpuError::NoDevice { .. } => Self {
                backend_hint: Some(NO_GPU_BACKEND_HINT),
                ..Self::of(error, Some(NO_GPU_HINT.to_owned()))
            },
            other => {
                let code = other.code();
                Self::of_step(error, code)
            }
        }
    }
}

/// What to do if there is no GPU.
const NO_GPU_HINT: &str = "install a Vulkan driver for your GPU";
const NO_GPU_BACKEND_HINT: &str = "or use --backend cpu";

impl From<GemmaError> for Failure {
    fn from(error: GemmaError) -> Self {
        EngineError::Model(error).into()
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let hint = match &error {
            EngineError::ContextOverflow { .. } => Some(
                "shorten the prompt, start over (/clear in a chat), or use a larger --context".to_owned(),
            ),
            EngineError::ContextTooLarge { most, .. } => Some(format!("use --context {most} or less")),
            EngineError::NoMedium { .. } => Some(
                "give the file of the model's towers, which is often named mmproj, with --projector"
                    .to_owned(),
            ),
            EngineError::MediaTooLarge { .. } => Some("use a smaller --budget".to_owned()),
            EngineError::Model(_) => Some("`rullama inspect` shows the contents of the file".to_owned()),
            EngineError::Tokenizer(error) => Some(tokenizer_hint(error)),
            EngineError::Chat(_) => Some(CHAT_HINT.to_owned()),
            EngineError::Step { code, .. } if code.starts_with("input.") => {
                Some("`rullama tokenize` shows valid token ids".to_owned())
            }
            EngineError::DeviceLost(_) => {
                let code = error.code();
                return Self::of_step(error, code);
            }
            EngineError::Step { code, source } => {
                let (code, hint) = (*code, source.downcast_ref().and_then(budget_hint));
                let failure = Self::of_step(error, code);
                return Self { hint: hint.or(failure.hint), ..failure };
            }
            _ => None,
        };
        let code = error.code();
        Self { code, ..Self::of(error, hint) }
    }
}

/// What to do if no context fits.
const MORE_MEMORY: &str = "use a larger --gpu-memory";

/// How to make a model fit.
fn budget_hint(error: &GpuError) -> Option<String> {
    match error {
        GpuError::OutOfBudget { bound: Bound::Memory { .. }, largest_context: None, .. } => {
            Some(MORE_MEMORY.to_owned())
        }
        GpuError::OutOfBudget { bound: Bound::Memory { .. }, largest_context: Some(most), .. } => {
            Some(format!("use a larger --gpu-memory, --context {most} or less, or --kv q8"))
        }
        GpuError::OutOfBudget { largest_context: Some(most), .. } => {
            Some(format!("use --context {most} or less, or --kv q8"))
        }
        _ => None,
    }
}

/// The hint for a step that failed, by the code of the backend's error, and the hint for commands with `--backend`.
fn step_hints(code: &str) -> (Option<&'static str>, Option<&'static str>) {
    const NO_GPU: Option<&str> = Some("or use --backend cpu");
    match code.split_once('.').unwrap_or((code, "")) {
        ("memory", _) => (Some("use a smaller --context, or --kv q8"), NO_GPU),
        ("device", _) => (Some("try again"), NO_GPU),
        ("context", _) => (Some("use a larger --context"), None),
        ("model", "unsupported") => (None, Some("use --backend cpu, which runs every model")),
        ("sample", _) => (Some("check the GPU with `rullama parity`"), NO_GPU),
        _ => (Some("the file may be damaged; download or copy it again"), None),
    }
}

/// The format of messages.
pub(crate) const CHAT_HINT: &str =
    r#"write messages as for Ollama's /api/chat: [{"role": "user", "content": "…"}]"#;

fn tokenizer_hint(error: &TokenizerError) -> String {
    match error {
        TokenizerError::UnknownId { .. } => "`rullama tokenize` shows valid token ids".to_owned(),
        _ => "rullama runs Gemma 4 models; `rullama inspect` shows the contents of the file".to_owned(),
    }
}

fn source_hint(error: &SourceError) -> Option<String> {
    Some(match error {
        SourceError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            "check the path; `rullama list` shows the models of the Ollama store".to_owned()
        }
        SourceError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            "you may not read this file; change its permissions, or copy it to a place that you can read"
                .to_owned()
        }
        SourceError::RangeIgnored { .. } => "download the file and give its path instead".to_owned(),
        SourceError::Connection { .. } => "check your network connection and try again".to_owned(),
        SourceError::Status { status: 404 | 410, .. } => "check the URL".to_owned(),
        SourceError::Status { status: 401 | 403, .. } => {
            "the server requires a login; download the file and give its path instead".to_owned()
        }
        _ => return None,
    })
}

fn header_hint(error: &HeaderError) -> Option<String> {
    Some(match error {
        HeaderError::Truncated { .. } | HeaderError::DataStart { .. } | HeaderError::TensorPastEnd { .. } => {
            "the file is incomplete; download or copy it again".to_owned()
        }
        HeaderError::StringTooLong { .. }
        | HeaderError::ArrayTooLong { .. }
        | HeaderError::EntryCount { .. }
        | HeaderError::TensorCount { .. } => {
            "the file is incomplete or damaged; download or copy it again".to_owned()
        }
        HeaderError::BigEndian => "convert the model again as a little-endian file".to_owned(),
        HeaderError::RemovedFormat { .. } | HeaderError::UnsupportedVersion { found: 1 } => {
            "the file is in an old format; convert the model again with a current llama.cpp".to_owned()
        }
        HeaderError::UnknownFormat { .. } | HeaderError::UnsupportedVersion { .. } => {
            "the file may need a newer rullama".to_owned()
        }
        HeaderError::NotGguf { .. } => {
            "rullama reads GGUF files; `rullama convert` makes one from a Hugging Face checkpoint".to_owned()
        }
        _ => return None,
    })
}

fn convert_hint(error: &ConvertError) -> Option<&'static str> {
    Some(match error {
        ConvertError::MissingFile { .. } => {
            "give a folder downloaded from Hugging Face, with config.json, tokenizer.json and all safetensors files"
        }
        ConvertError::Json { .. } | ConvertError::TooLarge { .. } => "download the file again",
        ConvertError::WrongLength { .. } | ConvertError::Safetensors { .. } => {
            "the file is incomplete or damaged; download it again"
        }
        ConvertError::RepeatedTensor { .. } => "the folder must contain only one checkpoint",
        ConvertError::Architecture { .. } => "rullama converts Gemma 4 models only",
        ConvertError::Quantised { .. } => {
            "convert the original checkpoint; --format chooses the quantization"
        }
        ConvertError::MissingTensor { name } | ConvertError::UnknownTensor { name, .. }
            if ["vision", "audio"].iter().any(|tower| name.contains(tower)) =>
        {
            "use --text-only to convert without the vision and audio towers"
        }
        ConvertError::MissingTensor { .. } => {
            "all safetensors files that the index names must be in the folder"
        }
        ConvertError::UnknownTensor { .. } => {
            "merge adapters into the model first; other structural changes can't be converted"
        }
        ConvertError::WrongShape { .. } | ConvertError::TokenId { .. } | ConvertError::Tokenizer { .. } => {
            "config.json, the tokenizer and the weights must belong to the same checkpoint"
        }
        ConvertError::WrongType { .. } => "save the model in bfloat16, float16 or float32",
        ConvertError::UnusedRule { .. } => {
            "`rullama inspect --tensors` lists the tensor names of a converted file"
        }
        _ => return None,
    })
}

fn store_hint(error: &StoreError) -> Option<String> {
    Some(match error {
        StoreError::ModelNotFound { name, .. } => {
            format!("download it with `ollama pull {name}`; `rullama list` shows the models you have")
        }
        StoreError::NoStore { .. } => {
            "install Ollama and download a model, or give the path of a GGUF file; if your models are somewhere else, set OLLAMA_MODELS to that folder"
                .to_owned()
        }
        StoreError::NotAFolder { .. } => {
            "give the folder that has `manifests` and `blobs` in it; OLLAMA_MODELS names that folder".to_owned()
        }
        StoreError::MissingBlob { name, .. } | StoreError::WrongSize { name, .. } => {
            format!("download it again with `ollama pull {name}`")
        }
        StoreError::WrongDigest { path, .. } => {
            format!("delete `{}` and download the model again with `ollama pull`", path.display())
        }
        StoreError::Damaged { path, .. } => {
            format!("delete `{}` and download the model again with `ollama pull`", path.display())
        }
        StoreError::NoWeights { .. } => "download a GGUF variant of the model, such as one whose tag ends in q4_K_M".to_owned(),
        StoreError::Remote { .. } => "download a variant without `cloud` in its name".to_owned(),
        StoreError::InvalidName { .. } => {
            "give the path of a GGUF file, or a name such as gemma4:e2b".to_owned()
        }
        StoreError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            "you may not read this; ask its owner for read permission, or set OLLAMA_MODELS to a folder that you can read"
                .to_owned()
        }
        StoreError::Io { .. } => "check that you have permission to read the Ollama store".to_owned(),
        StoreError::Delete { .. } => "check that you have permission to change the Ollama store".to_owned(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_are_recognised() {
        let said = |bytes: &[u8]| not_gguf("m", bytes);
        assert_eq!(said(b""), "`m` is empty");
        assert_eq!(said(b"GGU"), "`m` is cut off: it has 3 of the first 4 bytes of a GGUF file");
        assert_eq!(said(b"%PDF"), "`m` isn't a GGUF file; it looks like a PDF");
        assert_eq!(said(b"<!do"), "`m` isn't a GGUF file; it looks like a web page");
        assert_eq!(said(b"abcd"), "`m` isn't a GGUF file");
        assert_eq!(said(b"a"), "`m` isn't a GGUF file");
    }

    /// `bench` has a context of its own making, so it is told what that is made of.
    #[test]
    fn a_measurement_that_does_not_fit_is_told_what_to_change() {
        let hint = |code, context_given, memory_given| {
            let failure = Failure { code, ..Failure::new("").hint("as ever") };
            failure.of_measuring(context_given, memory_given).hint.unwrap()
        };
        assert!(hint("context.too_large", false, false).contains("--depth"));
        assert!(hint("context.overflow", true, false).contains("--context"));
        assert!(hint("memory.too_large", false, true).contains("larger --gpu-memory"));
        assert!(!hint("memory.exhausted", false, false).contains("--gpu-memory"));
        for (code, context_given) in [("context.too_large", true), ("memory.too_large", true), ("", false)] {
            assert_eq!(hint(code, context_given, true), "as ever");
        }
        let hopeless = || Failure { code: "memory.too_large", ..Failure::new("").hint(MORE_MEMORY) };
        assert_eq!(hopeless().of_measuring(false, true).hint.unwrap(), MORE_MEMORY);
        assert_eq!(hopeless().of_comparing(true).hint.unwrap(), MORE_MEMORY);
        let hint = |code, memory_given| {
            let failure = Failure { code, ..Failure::new("").hint("as ever") };
            failure.of_comparing(memory_given).hint.unwrap()
        };
        assert!(hint("memory.too_large", true).contains("larger --gpu-memory"));
        assert!(!hint("memory.exhausted", false).contains("--gpu-memory"));
        assert_eq!(hint("device.lost", true), "as ever");
    }
}
