//! `rullama show`: a model at a glance, as `ollama show` prints it.

use rullama_gemma::Medium;
use serde_json::{Map, Value, json};

use crate::{
    arguments::ShowArguments,
    failure::Failure,
    family, media,
    model::{self, Opened},
    output,
};

/// Lines of a licence or a system prompt that the summary shows.
const LINES: usize = 2;

/// The demo model is part of rullama and has rullama's licence.
const DEMO_LICENCE: &str = "MIT or Apache-2.0, at your option";

pub(super) async fn run(arguments: &ShowArguments) -> Result<(), Failure> {
    let opened = model::open(&arguments.model).await?;
    let summary = Summary::of(&opened, opened.media().await);
    let part = |what: &str, text: Option<&str>| match text {
        Some(text) => Ok(output::line(text.trim_end())?),
        None => Err(Failure::new(format!("`{}` has no {what}", opened.name))),
    };
    if arguments.json {
        return Ok(output::json(&summary.json())?);
    }
    if arguments.license {
        return match &summary.licence {
            Some(text) => Ok(output::line(text.trim_end())?),
            None => Err(Failure::new("the file states no licence")
                .hint("look for the licence where you got the file from")),
        };
    }
    if arguments.system {
        return part("system prompt", summary.system.as_deref());
    }
    if arguments.template {
        return part("prompt template", summary.template.as_deref());
    }
    if arguments.parameters {
        let rows = summary.parameter_rows();
        return match rows.is_empty() {
            false => Ok(output::table(&rows)?),
            true => part("default parameters", None),
        };
    }
    Ok(output::text(&summary.text())?)
}

/// The facts about a model that a user chooses it by.
struct Summary {
    architecture: String,
    parameters: u64,
    context_length: Option<u32>,
    embedding_length: Option<u32>,
    quantization: String,
    /// Size of the file, or of all parts of a split model.
    bytes: u64,
    capabilities: Vec<&'static str>,
    /// What it takes besides text.
    media: Vec<Medium>,
    /// Default options, which only models of the store have.
    options: Map<String, Value>,
    system: Option<String>,
    template: Option<String>,
    licence: Option<String>,
}

impl Summary {
    fn of(opened: &Opened, media: Vec<Medium>) -> Self {
        let model = &opened.model;
        let metadata = model.metadata();
        let text = |key| metadata.optional_str(key).ok().flatten().map(str::to_owned);
        let architecture = text("general.architecture").unwrap_or_default();
        let number = |key| metadata.section(&architecture).optional_u32(key).ok().flatten();
        let stored = opened.stored.as_ref();
        let licences = stored.map(|stored| stored.licences.join("\n\n")).filter(|text| !text.is_empty());
        let mut capabilities = vec!["completion"];
        capabilities.extend(media.iter().map(|medium| medium.as_str()));
        if architecture.starts_with("gemma4") {
            capabilities.extend(["tools", "thinking"]);
        }
        Self {
            parameters: family::parameters(model),
            context_length: number("context_length"),
            embedding_length: number("embedding_length"),
            quantization: stored
                .map(|stored| stored.config.file_type.clone())
                .filter(|format| !format.is_empty())
                .unwrap_or_else(|| family::main_format(model).to_owned()),
            bytes: model.source().len(),
            capabilities,
            media,
            options: stored.map(|stored| stored.params.clone()).unwrap_or_default(),
            system: stored.and_then(|stored| stored.system.clone()),
            template: stored
                .and_then(|stored| stored.template.clone())
                .or_else(|| text("tokenizer.chat_template")),
            licence: licences
                .or_else(|| text("general.license"))
                .or_else(|| opened.is_demo.then(|| DEMO_LICENCE.to_owned())),
            architecture,
        }
    }

    fn json(&self) -> Value {
        json!({
            "architecture": self.architecture,
            "parameter_count": self.parameters,
            "context_length": self.context_length,
            "embedding_length": self.embedding_length,
            "quantization": self.quantization,
            "size": self.bytes,
            "capabilities": self.capabilities,
            "media": media::json_about(&self.media),
            "parameters": self.options,
            "system": self.system,
            "template": self.template,
            "license": self.licence,
        })
    }

    fn parameter_rows(&self) -> Vec<Vec<String>> {
        let one = |name: &str, value: &Value| vec![name.to_owned(), value.to_string()];
        let rows = self.options.iter().flat_map(|(name, value)| match value {
            // One line for each stop text, as Ollama prints them.
            Value::Array(values) => values.iter().map(|value| one(name, value)).collect(),
            value => vec![one(name, value)],
        });
        rows.collect()
    }

    fn text(&self) -> String {
        let or_unknown =
            |number: Option<u32>| number.map_or("unknown".to_owned(), |number| number.to_string());
        let facts = [
            ("architecture", self.architecture.clone()),
            ("parameters", output::count(self.parameters)),
            ("context length", or_unknown(self.context_length)),
            ("embedding length", or_unknown(self.embedding_length)),
            ("quantization", self.quantization.clone()),
            ("size", output::size(self.bytes)),
        ];
        let facts = facts.map(|(what, value)| vec![what.to_owned(), value]);
        let mut capabilities: Vec<_> =
            self.capabilities.iter().map(|what| vec![(*what).to_owned()]).collect();
        let media = media::rows_about(&self.media).into_iter();
        let media: Vec<_> = media.map(|(what, about)| vec![what.to_owned(), about]).collect();
        if !self.architecture.starts_with("gemma4") {
            let why = match self.media.is_empty() {
                true => "rullama can't run this model: it runs Gemma 4 models only",
                false => "the towers of a model: --projector puts them beside its text model",
            };
            capabilities = vec![vec![why.to_owned()]];
        }
        let mut text = String::new();
        let mut section = |title: &str, rows: &[Vec<String>]| {
            if rows.is_empty() {
                return;
            }
            text.push_str(&format!("  {title}\n"));
            for line in output::table_text(rows).lines() {
                text.push_str(&format!("    {line}\n"));
            }
            text.push('\n');
        };
        section("Model", &facts);
        section("Capabilities", &capabilities);
        section("Images and sound", &media);
        section("Parameters", &self.parameter_rows());
        section("System", &self.system.as_deref().map(first_lines).unwrap_or_default());
        section("Licence", &self.licence.as_deref().map(first_lines).unwrap_or_default());
        // Sections are separated by blank lines; nothing follows the last.
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    }
}

/// The first lines of a long text, with an ellipsis if there are more.
fn first_lines(text: &str) -> Vec<Vec<String>> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut shown: Vec<Vec<String>> = lines.by_ref().take(LINES).map(|line| vec![line.to_owned()]).collect();
    if lines.next().is_some() {
        shown.push(vec!["…".to_owned()]);
    }
    shown
}
