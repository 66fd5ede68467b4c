//! Finds the model that a command names: a file, a URL, a name in the Ollama store, or the demo model.

use std::{
    borrow::Cow,
    ffi::OsStr,
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
};

use indicatif::{ProgressBar, ProgressStyle};
use rullama_chat::PromptStyle;
use rullama_engine::{EngineError, prompt_style};
use rullama_gemma::{Config, Medium};
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

/// Opens the demo model, with a note that `word` was taken as the prompt.
pub(crate) async fn open_demo_instead_of(word: &str) -> Result<Opened, Failure> {
    let opened = open_demo().await?;
    output::note(format_args!(
        "note: `{word}` is not a model, so it was used as the prompt; the demo model answers. `rullama list` shows your \
         models"
    ));
    Ok(opened)
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
    let name = match text.parse::<Name>() {
        Err(_) if path.is_dir() => return Err(folder_as_model(path)),
        name => name?,
    };
    let stored = match store().model(&name) {
        // The demo model needs no store.
        Err(
            StoreError::NoStore { .. }
            | StoreError::NotAFolder { .. }
            | StoreError::ModelNotFound { .. }
            | StoreError::Io { .. },
        ) if demo::is_called(text) => {
            return open_demo().await;
        }
        Err(StoreError::NoStore { .. } | StoreError::ModelNotFound { .. }) if path.is_dir() => {
            return Err(folder_as_model(path));
        }
        stored => stored?,
    };
    let model = open_path(&stored.weights.path).await?;
    Ok(Opened { model, name: stored.name.to_string(), stored: Some(stored), is_demo: false })
}

/// Whether an argument names a model rather than being a prompt: `generate` takes either.
///
/// A file or folder that exists, a URL, `demo` and a model of the store do. So does anything written like NAME:TAG or like
/// a path, so that a mistyped name is reported and not answered. Text with spaces that is no file is a prompt.
pub(crate) fn names_a_model(argument: &OsStr) -> bool {
    let path = Path::new(argument);
    let Some(text) = argument.to_str() else { return true };
    if path.is_file() {
        return true;
    }
    if text.is_empty() || text == "-" || text.contains(char::is_whitespace) {
        return false;
    }
    if has_scheme(text) || looks_like_a_path(path) || path.is_dir() || demo::is_called(text) {
        return true;
    }
    let Ok(name) = text.parse::<Name>() else { return false };
    text.contains(':')
        || !matches!(store().model(&name), Err(StoreError::NoStore { .. } | StoreError::ModelNotFound { .. }))
}

/// Whether an argument is a word that could be the name of a model.
pub(crate) fn could_be_a_name(argument: &OsStr) -> bool {
    argument.to_str().is_some_and(|text| text.parse::<Name>().is_ok())
}

/// A folder was given where a model is needed.
fn folder_as_model(path: &Path) -> Failure {
    Failure::new(format!("`{}` is a folder, not a model", path.display())).hint(
        "give the path of a GGUF file; `rullama convert` makes one from a folder downloaded from Hugging Face",
    )
}

/// Whether this is written as a URL, with any scheme.
fn has_scheme(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
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

/// The architecture of a file that has towers and no text model.
const PROJECTOR: &str = "clip";

/// Opens a file with towers: a path or a URL.
async fn open_projector(argument: &OsStr) -> Result<Model, Failure> {
    let opened = match argument.to_str() {
        Some(text) if has_scheme(text) => open_address(text).await?,
        _ => open_file(Path::new(argument)).await?,
    };
    let shown = argument.to_string_lossy();
    match opened.architecture() {
        PROJECTOR if Medium::of(&opened.model).is_empty() => {
            Err(Failure::new(format!("`{shown}` has no vision or audio tower")))
        }
        PROJECTOR => Ok(opened.model),
        other => Err(Failure::new(format!(
            "`{shown}` is not a projector file: it has a model of architecture `{other}`"
        ))
        .hint(
            "give the text model as MODEL, and the file of its towers, often named mmproj, with --projector",
        )),
    }
}

async fn open_file(path: &Path) -> Result<Opened, Failure> {
    if path.is_dir() {
        return Err(folder_as_model(path));
    }
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    Ok(Opened { model: open_path(path).await?, name, stored: None, is_demo: false })
}

async fn open_demo() -> Result<Opened, Failure> {
    let model = demo::find()?.open().await?;
    Ok(Opened { model, name: "demo".to_owned(), stored: None, is_demo: true })
}

async fn open_address(url: &str) -> Result<Opened, Failure> {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Err(Failure::new(format!(
            "`{url}` can't be opened: rullama reads http and https addresses only"
        ))
        .hint("download the file and give its path"));
    }
    let url = &*direct_address(url);
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

/// The address of the file itself. Hugging Face shows a page about a file at `/blob/` and the file at `/resolve/`.
fn direct_address(url: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = url.split_once("://") else { return Cow::Borrowed(url) };
    let mut parts: Vec<&str> = rest.splitn(5, '/').collect();
    let is_hugging_face = ["huggingface.co", "www.huggingface.co", "hf.co"]
        .iter()
        .any(|host| parts[0].eq_ignore_ascii_case(host));
    // HOST/OWNER/REPOSITORY/blob/REVISION/PATH
    if !is_hugging_face || parts.len() < 5 || parts[3] != "blob" {
        return Cow::Borrowed(url);
    }
    parts[3] = "resolve";
    Cow::Owned(format!("{scheme}://{}", parts.join("/")))
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
        let found = self.architecture();
        if found.starts_with("gemma4") {
            return Ok(());
        }
        Err(Failure::new(format!(
            "this is a model of architecture `{found}`, and rullama runs `gemma4` models only"
        ))
        .hint("if this file has only the vision and audio towers, give the file of the text model"))
    }

    fn architecture(&self) -> &str {
        self.model.metadata().optional_str("general.architecture").ok().flatten().unwrap_or_default()
    }

    /// The model with its towers beside it, for commands that encode images and sound: those of --projector, or else those of
    /// the model's entry in the store.
    pub(crate) async fn with_towers(mut self, projector: Option<&OsStr>) -> Result<Self, Failure> {
        if self.architecture() == PROJECTOR {
            let message = format!("`{}` has vision and audio towers, but no text model", self.name);
            return Err(Failure::new(message)
                .hint("give the file of the text model as MODEL, and this one with --projector"));
        }
        let projector = match projector {
            None => self.stored_projector().await,
            Some(_) if !Medium::of(&self.model).is_empty() => {
                let message = format!("`{}` has vision and audio towers already", self.name);
                return Err(Failure::new(message).hint("leave out --projector"));
            }
            Some(argument) => Some(self.open_towers(argument).await?),
        };
        if let Some(projector) = projector {
            self.model = self.model.join(projector)?;
        }
        Ok(self)
    }

    /// Opens a file with towers for this model.
    async fn open_towers(&self, argument: &OsStr) -> Result<Model, Failure> {
        let projector = open_projector(argument).await?;
        // Loading the text model reports what is wrong with it.
        let own = Config::read(&self.model).ok().map(|config| u64::from(config.width));
        let mut widths =
            Medium::of(&projector).into_iter().filter_map(|medium| medium.projected_width(&projector));
        match (own, widths.find(|&width| own.is_some_and(|own| own != width))) {
            (Some(own), Some(width)) => Err(Failure::new(format!(
                "`{}` belongs to another model (width {width}; this one has {own})",
                argument.to_string_lossy()
            ))
            .hint("give the projector file that was made for this model")),
            _ => Ok(projector),
        }
    }

    /// What the model takes besides text, with the towers of its entry in the store.
    pub(crate) async fn media(&self) -> Vec<Medium> {
        let projector = self.stored_projector().await;
        Medium::of(projector.as_ref().unwrap_or(&self.model))
    }

    /// The towers of the model's entry in the store, if the model's own file has none. The text model works without them, so
    /// a file that can't be used is only noted.
    async fn stored_projector(&self) -> Option<Model> {
        let blob = self.stored.as_ref()?.projector.as_ref().filter(|_| Medium::of(&self.model).is_empty())?;
        match self.open_towers(blob.path.as_os_str()).await {
            Ok(projector) => Some(projector),
            Err(failure) => {
                let why = failure.message();
                output::note(format_args!("warning: the towers of `{}` can't be used: {why}", self.name));
                None
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_about_files_become_the_files() {
        let direct = "https://huggingface.co/owner/model/resolve/main/a/blob/m.gguf?download=true";
        assert_eq!(direct_address(&direct.replacen("resolve", "blob", 1)), direct);
        for same in [direct, "https://example.org/owner/model/blob/main/m.gguf", "https://huggingface.co/a"] {
            assert_eq!(direct_address(same), same);
        }
    }

    #[test]
    fn addresses_have_schemes() {
        for address in ["http://a/m.gguf", "https://a", "ftp://a/m.gguf", "HTTPS://a"] {
            assert!(has_scheme(address), "{address}");
        }
        for other in ["gemma4:e2b", "What is http://?", "://a", "a/b"] {
            assert!(!has_scheme(other), "{other}");
        }
    }
}
