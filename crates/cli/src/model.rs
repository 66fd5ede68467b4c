//! Finds the model that a command names: a file, a URL, a name in the Ollama store, or the demo model.

use std::{
    ffi::OsStr,
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
};

use indicatif::{ProgressBar, ProgressStyle};
use rullama_chat::PromptStyle;
use rullama_engine::{EngineError, prompt_style};
use rullama_gemma::Config;
use rullama_gguf::{
    ByteSource, HttpSource, Model, SplitName,
    ollama::{Name, Store, StoreError, StoredModel},
    open_path,
};
use rullama_tokenizer::Tokenizer;

use crate::{demo, failure::Failure, output};

/// A model that was opened, and where it came from.
pub(crate) struct Opened {
    pub(crate) model: Model,
    /// Its name: the file's stem, or the name in the store.
    pub(crate) name: String,
    /// The rest of a model of the store: its configuration, system prompt, parameters and licence.
    pub(crate) stored: Option<StoredModel>,
    /// Whether it is the built-in demo model.
    pub(crate) is_demo: bool,
}

/// The store that Ollama on this machine would use.
pub(crate) fn store() -> Store {
    let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = std::env::home_dir();
    Store::locate(path("OLLAMA_MODELS").as_deref(), home.as_deref())
}

/// Opens the model that is named, or else the demo model, with a note that says so.
pub(crate) async fn open_or_demo(named: Option<&OsStr>) -> Result<Opened, Failure> {
    match named {
        Some(named) => open(named).await,
        None => {
            let opened = open_demo().await?;
            demo::announce();
            Ok(opened)
        }
    }
}

/// Opens the model that `argument` names.
pub(crate) async fn open(argument: &OsStr) -> Result<Opened, Failure> {
    let path = Path::new(argument);
    let text = argument.to_str().unwrap_or_default();
    if is_address(text) {
        return open_address(text).await;
    }
    // A name in the store may begin with a scheme too. Anything else with a scheme is a URL.
    if has_scheme(text) && !text.parse::<Name>().is_ok_and(|name| store().model(&name).is_ok()) {
        return open_address(text).await;
    }
    // A folder may have the same name as a model. Text that is not UTF-8 can only be a path.
    if path.is_file() || looks_like_a_path(path) || argument.to_str().is_none() {
        return open_file(path).await;
    }
    let stored = match store().model(&text.parse::<Name>()?) {
        Err(StoreError::NoStore { .. } | StoreError::ModelNotFound { .. }) if demo::is_called(text) => {
            return open_demo().await;
        }
        stored => stored?,
    };
    let model = open_path(&stored.weights.path).await?;
    Ok(Opened { model, name: stored.name.to_string(), stored: Some(stored), is_demo: false })
}

/// Whether an argument names a model rather than being a prompt: `generate` takes either.
///
/// A file that exists, a URL, `demo` and a model of the store do. So does anything written like NAME:TAG or like a path,
/// so that a mistyped name is reported and not answered. Text with spaces that is no file is a prompt.
pub(crate) fn names_a_model(argument: &OsStr) -> bool {
    let path = Path::new(argument);
    let Some(text) = argument.to_str() else { return true };
    if path.is_file() {
        return true;
    }
    if text.is_empty() || text == "-" || text.contains(char::is_whitespace) {
        return false;
    }
    if has_scheme(text) || looks_like_a_path(path) || demo::is_called(text) {
        return true;
    }
    let Ok(name) = text.parse::<Name>() else { return false };
    text.contains(':')
        || !matches!(store().model(&name), Err(StoreError::NoStore { .. } | StoreError::ModelNotFound { .. }))
}

fn has_scheme(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// Whether this is the URL of a GGUF file. Names in the store do not end like that.
fn is_address(text: &str) -> bool {
    has_scheme(text) && text.split(['?', '#']).next().is_some_and(|path| path.ends_with(".gguf"))
}

/// Whether this can only be a path, even if no such file exists.
fn looks_like_a_path(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"))
        || path.is_absolute()
        || path.starts_with(".")
        || path.starts_with("..")
}

async fn open_file(path: &Path) -> Result<Opened, Failure> {
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    Ok(Opened { model: open_path(path).await?, name, stored: None, is_demo: false })
}

async fn open_demo() -> Result<Opened, Failure> {
    let model = demo::find()?.open().await?;
    Ok(Opened { model, name: "demo".to_owned(), stored: None, is_demo: true })
}

async fn open_address(url: &str) -> Result<Opened, Failure> {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let file = path.rsplit('/').next().unwrap_or(path);
    let name = file.strip_suffix(".gguf").unwrap_or(file).to_owned();
    let model = match SplitName::parse(url) {
        None => Model::open(Box::new(HttpSource::open(url).await?)).await?,
        Some(split) => {
            let mut parts: Vec<Box<dyn ByteSource>> = Vec::new();
            for part in split.parts() {
                parts.push(Box::new(HttpSource::open(part).await?));
            }
            Model::open_parts(parts).await?
        }
    };
    Ok(Opened { model, name, stored: None, is_demo: false })
}

impl Opened {
    pub(crate) fn tokenizer(&self) -> Result<Tokenizer, Failure> {
        Ok(Tokenizer::from_gguf(self.model.header())?)
    }

    /// Makes the engine's checks before the GPU is opened, which takes longer.
    pub(crate) fn check(&self, context: Option<u32>) -> Result<(), Failure> {
        let most = Config::read(&self.model)?.context_length;
        match context {
            Some(asked) if asked > most => Err(EngineError::ContextTooLarge { asked, most }.into()),
            _ => Ok(()),
        }
    }

    /// Refuses models other than Gemma 4, for commands that would not notice.
    pub(crate) fn check_architecture(&self) -> Result<(), Failure> {
        let found =
            self.model.metadata().optional_str("general.architecture").ok().flatten().unwrap_or_default();
        if found.starts_with("gemma4") {
            return Ok(());
        }
        Err(Failure::new(format!(
            "this is a model of architecture `{found}`, and rullama runs `gemma4` models only"
        ))
        .hint("if this file has only the vision and audio towers, give the file of the text model"))
    }

    /// The style of prompts: the one that the model's entry in the Ollama store states by its renderer, or else the one
    /// that follows from the file, as in every other program that uses the engine.
    pub(crate) fn prompt_style(&self) -> Result<PromptStyle, Failure> {
        let stated =
            self.stored.as_ref().and_then(|stored| PromptStyle::from_renderer(&stored.config.renderer));
        Ok(stated.map_or_else(|| prompt_style(&self.model), Ok)?)
    }
}

/// A progress bar for `bytes` bytes, drawn on a terminal only.
pub(crate) fn progress(what: &str, bytes: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
    let style = ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(bytes).with_style(style).with_message(output::harmless(what).into_owned())
}

/// A progress bar for `steps` steps, drawn on a terminal only.
pub(crate) fn progress_of_steps(what: &str, steps: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = "{msg} {wide_bar} {pos}/{len} {eta}";
    let style = ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(steps).with_style(style).with_message(output::harmless(what).into_owned())
}
