//! What a user sees when something goes wrong: facts from the libraries, and a hint.

use std::{error::Error, fmt, io};

use rullama_chat::ChatError;
use rullama_convert::ConvertError;
use rullama_engine::{EngineError, OptionError};
use rullama_gemma::GemmaError;
use rullama_gguf::{HeaderError, ModelError, SourceError, error_chain, ollama::StoreError};
use rullama_gpu::{Bound, GpuError};
use rullama_tokenizer::TokenizerError;

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    cause: Option<Box<dyn Error + Send + Sync>>,
    hint: Option<String>,
    /// What can be done besides, where the command has `--backend`.
    backend_hint: Option<&'static str>,
    /// The library's own short name for it; empty for failures of this program.
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

    /// Says what to do, in place of what was said before.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        (self.hint, self.backend_hint) = (Some(hint.into()), None);
        self
    }

    /// Says nothing about `--backend`, which not every command has.
    pub(crate) fn without_backend(mut self) -> Self {
        self.backend_hint = None;
        self
    }

    /// What went wrong, without causes and hints.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Whether the reader of our output went away, as `head` does. That is no failure.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        let cause = self.cause.as_deref().and_then(|cause| cause.downcast_ref::<io::Error>());
        cause.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Makes it a failure of the command line itself rather than of what it names.
    pub(crate) fn usage(mut self) -> Self {
        self.status = 2;
        self
    }

    /// The exit status: 2 for usage, 1 for everything else.
    pub(crate) fn status(&self) -> u8 {
        self.status
    }

    /// A failure from a library's error, with what to do about it.
    fn of(error: impl Error + 'static, hint: Option<String>) -> Self {
        Self { hint, ..Self::new(error_chain(&error)) }
    }

    /// A failure of the GPU, with what to do about it.
    fn of_step(error: impl Error + 'static, code: &'static str) -> Self {
        let (hint, backend_hint) = step_hints(code);
        Self { backend_hint, code, ..Self::of(error, hint.map(str::to_owned)) }
    }

    /// Gives advice in the words of `bench`, where the context follows from what is measured unless it is given.
    pub(crate) fn of_measuring(self, context_given: bool, memory_given: bool) -> Self {
        let hint = match (self.code.split_once('.'), context_given) {
            (Some(("context", "overflow")), true) => {
                "leave out --context, and it is as large as it has to be; or give a larger one"
            }
            (Some(("context", _)), false) => "give a smaller --depth, --prompt or --generate",
            // Where not even the shortest context fits, all that is measured could be shorter in vain.
            (Some(("memory", _)), _) if self.hint.as_deref() == Some(MORE_MEMORY) => return self,
            (Some(("memory", _)), false) if memory_given => {
                "a larger --gpu-memory, a smaller --depth or --kv q8 makes it fit"
            }
            (Some(("memory", _)), false) => "a smaller --depth or --kv q8 needs less memory",
            _ => return self,
        };
        Self { hint: Some(hint.to_owned()), ..self }
    }

    /// Gives advice in the words of `parity`, where the context follows from what is compared.
    pub(crate) fn of_comparing(self, memory_given: bool) -> Self {
        let hint = match self.code.split_once('.') {
            Some(("context", _)) => "give a smaller --max-tokens, or shorter --prompts",
            Some(("memory", _)) if self.hint.as_deref() == Some(MORE_MEMORY) => return self,
            Some(("memory", _)) if memory_given => {
                "a larger --gpu-memory, a smaller --max-tokens, shorter --prompts or --kv q8 makes it fit"
            }
            Some(("memory", _)) => "a smaller --max-tokens, shorter --prompts or --kv q8 needs less memory",
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
        // Indented, so that a name with a line feed in it cannot begin a line of its own, such as a false hint.
        writeln!(f, "error: {}", message.replace('\n', "\n       "))?;
        let hints: Vec<&str> = self.hint.as_deref().into_iter().chain(self.backend_hint).collect();
        if !hints.is_empty() {
            writeln!(f, "\nhint: {}", hints.join("; "))?;
        }
        Ok(())
    }
}

/// Only standard output is written without a file name at hand.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new("the output cannot be written").caused_by(error)
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
        let hint = match &error {
            ModelError::Header { source, .. } => header_hint(source),
            ModelError::Source(error) => source_hint(error),
            ModelError::PartCount { .. } => {
                Some("give the path of one part; the others are found beside it by their names".to_owned())
            }
            _ => None,
        };
        Self::of(error, hint)
    }
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
        Self::of(error, Some("`rullama generate --help` describes the options".to_owned()))
    }
}

impl From<GpuError> for Failure {
    fn from(error: GpuError) -> Self {
        match &error {
            GpuError::NoAdapter { reason } => {
                // What was left out of this program is of no interest on this machine.
                let said: Vec<&str> =
                    reason.split([',', ';']).filter(|part| !part.ends_with("not compiled in")).collect();
                let message = format!("no GPU adapter was found: {}", said.join(";"));
                Self { backend_hint: Some(NO_GPU_BACKEND_HINT), ..Self::new(message).hint(NO_GPU_HINT) }
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

/// What to do without a GPU.
const NO_GPU_HINT: &str = "install a driver for Vulkan";
const NO_GPU_BACKEND_HINT: &str = "--backend cpu needs none, and is exact and slow";

impl From<GemmaError> for Failure {
    fn from(error: GemmaError) -> Self {
        EngineError::Model(error).into()
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let hint = match &error {
            EngineError::ContextOverflow { .. } => Some(
                "shorten the prompt or begin anew (/clear in a chat), or give a larger --context".to_owned(),
            ),
            EngineError::ContextTooLarge { most, .. } => Some(format!("--context {most} is the most")),
            EngineError::Model(_) => Some("`rullama inspect` shows what the file holds".to_owned()),
            EngineError::Tokenizer(error) => Some(tokenizer_hint(error)),
            EngineError::Chat(_) => Some(CHAT_HINT.to_owned()),
            EngineError::Step { code, .. } if code.starts_with("input.") => {
                Some("`rullama tokenize` shows the ids of a text".to_owned())
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

/// What to do where no context fits.
const MORE_MEMORY: &str = "give a larger --gpu-memory";

/// What makes a model fit that does not: only `--gpu-memory` bounds the memory beforehand.
fn budget_hint(error: &GpuError) -> Option<String> {
    match error {
        GpuError::OutOfBudget { bound: Bound::Memory { .. }, largest_context: None, .. } => {
            Some(MORE_MEMORY.to_owned())
        }
        GpuError::OutOfBudget { bound: Bound::Memory { .. }, largest_context: Some(most), .. } => Some(
            format!("give a larger --gpu-memory, or --context {most}; --kv q8 needs less memory as well"),
        ),
        GpuError::OutOfBudget { largest_context: Some(most), .. } => {
            Some(format!("give --context {most}; --kv q8 needs less memory as well"))
        }
        _ => None,
    }
}

/// What to do about a step that failed, by the code of the backend's error; and besides, where there is `--backend`.
fn step_hints(code: &str) -> (Option<&'static str>, Option<&'static str>) {
    const NO_GPU: Option<&str> = Some("--backend cpu needs no GPU");
    match code.split_once('.').unwrap_or((code, "")) {
        ("memory", _) => (Some("a smaller --context or --kv q8 needs less memory"), NO_GPU),
        ("device", _) => (Some("try again"), NO_GPU),
        ("context", _) => (Some("give a larger --context"), None),
        ("model", "unsupported") => (None, Some("--backend cpu runs every model")),
        ("sample", _) => (Some("`rullama parity` compares the GPU with the CPU"), NO_GPU),
        _ => (Some("the file may be damaged; download or copy it again"), None),
    }
}

/// How messages and tools are written.
pub(crate) const CHAT_HINT: &str =
    r#"messages are written as in Ollama's /api/chat: [{"role": "user", "content": "…"}]"#;

fn tokenizer_hint(error: &TokenizerError) -> String {
    match error {
        TokenizerError::UnknownId { .. } => "`rullama tokenize` shows the ids of a text".to_owned(),
        _ => {
            "only Gemma 4 files with their tokenizer can be used; `rullama inspect` shows what is in the file"
                .to_owned()
        }
    }
}

fn source_hint(error: &SourceError) -> Option<String> {
    Some(match error {
        SourceError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            "check the path; `rullama models` lists what the Ollama store holds".to_owned()
        }
        SourceError::RangeIgnored { .. } => "download the file and give its path instead".to_owned(),
        SourceError::Connection { .. } => "check the network and try again".to_owned(),
        SourceError::Status { status: 404 | 410, .. } => "check the address".to_owned(),
        SourceError::Status { status: 401 | 403, .. } => {
            "the server wants you to log in; download the file and give its path instead".to_owned()
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
        HeaderError::BigEndian => "convert the model again for little-endian machines".to_owned(),
        HeaderError::RemovedFormat { .. } | HeaderError::UnsupportedVersion { found: 1 } => {
            "the file is of an old kind; convert the model again with a current llama.cpp".to_owned()
        }
        HeaderError::UnknownFormat { .. } | HeaderError::UnsupportedVersion { .. } => {
            "the file may need a newer rullama".to_owned()
        }
        HeaderError::NotGguf { .. } => "only GGUF files can be read".to_owned(),
        _ => return None,
    })
}

fn convert_hint(error: &ConvertError) -> Option<&'static str> {
    Some(match error {
        ConvertError::MissingFile { .. } => {
            "give the folder that was downloaded from Hugging Face, with config.json, tokenizer.json and all files of weights"
        }
        ConvertError::Json { .. } | ConvertError::TooLarge { .. } => "download the file again",
        ConvertError::WrongLength { .. } | ConvertError::Safetensors { .. } => {
            "the file is incomplete or damaged; download it again"
        }
        ConvertError::RepeatedTensor { .. } => "keep the files of one checkpoint only in the folder",
        ConvertError::Architecture { .. } => "only Gemma 4 models can be converted",
        ConvertError::Quantised { .. } => {
            "convert the checkpoint that it was made from; --format quantises on the way"
        }
        ConvertError::MissingTensor { name } | ConvertError::UnknownTensor { name, .. }
            if ["vision", "audio"].iter().any(|tower| name.contains(tower)) =>
        {
            "--text-only converts without what makes soft tokens of images and sound"
        }
        ConvertError::MissingTensor { .. } => {
            "all files of weights that the index names must be in the folder"
        }
        ConvertError::UnknownTensor { .. } => {
            "merge adapters into the model first; other changes to its structure cannot be converted"
        }
        ConvertError::WrongShape { .. } | ConvertError::TokenId { .. } | ConvertError::Tokenizer { .. } => {
            "config.json, the tokenizer and the weights must be of one checkpoint"
        }
        ConvertError::WrongType { .. } => "save the model in bfloat16, float16 or float32",
        ConvertError::UnusedRule { .. } => "`rullama inspect --tensors` lists the names of a converted file",
        _ => return None,
    })
}

fn store_hint(error: &StoreError) -> Option<String> {
    Some(match error {
        StoreError::ModelNotFound { name, .. } => {
            format!("`ollama pull {name}` downloads it; `rullama models` lists what is there")
        }
        StoreError::NoStore { .. } => {
            "set OLLAMA_MODELS to the folder that holds `manifests` and `blobs`, or give the path of a GGUF file, or `demo`"
                .to_owned()
        }
        StoreError::MissingBlob { name, .. } | StoreError::WrongSize { name, .. } => {
            format!("`ollama pull {name}` downloads what is missing")
        }
        StoreError::WrongDigest { path, .. } => {
            format!("delete `{}` and pull the model again", path.display())
        }
        StoreError::Damaged { path, .. } => {
            format!("delete `{}` and pull the model again with `ollama pull`", path.display())
        }
        StoreError::NoWeights { .. } => "pull a GGUF variant of the model, such as one ending in q4_K_M".to_owned(),
        StoreError::Remote { .. } => "pull a variant without `cloud` in its name".to_owned(),
        StoreError::InvalidName { .. } => {
            "a model is a path to a GGUF file, or a name such as gemma4:e2b".to_owned()
        }
        StoreError::Io { .. } => "check that you may read the store".to_owned(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
