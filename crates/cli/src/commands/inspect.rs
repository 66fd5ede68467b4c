//! `rullama inspect`: the contents of a model file.

use std::collections::BTreeMap;

use rullama_gemma::{Config, Medium, Outputs, text, warnings};
use rullama_gguf::{Array, Model, Value};
use serde_json::{Map, Value as Json, json};

use super::plan::PlanListing;
use crate::{
    arguments::InspectArguments,
    failure::Failure,
    family, media,
    model::{self, Opened},
    output,
};

/// Longer arrays, such as vocabularies, are shown by type and length.
const LONGEST_ARRAY: usize = 64;

pub(super) async fn run(arguments: &InspectArguments) -> Result<(), Failure> {
    let opened = model::open(&arguments.model).await?;
    let report = Report::of(&opened, opened.media().await);
    let plan = match arguments.plan {
        true => Some(PlanListing::of(&opened.model, arguments.rows, arguments.position).await?),
        false => None,
    };
    if arguments.json {
        let mut value = report.json();
        if arguments.tensors {
            value.insert("tensors".to_owned(), tensors_json(&opened.model));
        }
        if arguments.metadata {
            value.insert("metadata".to_owned(), metadata_json(&opened.model));
        }
        if let Some(plan) = plan {
            value.insert("plan".to_owned(), plan.json());
        }
        return Ok(output::json(&value)?);
    }
    output::table(&report.rows())?;
    if arguments.metadata {
        output::line("")?;
        output::table(&metadata_rows(&opened.model))?;
    }
    if arguments.tensors {
        output::line("")?;
        output::table(&tensor_rows(&opened.model))?;
    }
    if let Some(plan) = plan {
        output::line("")?;
        plan.print()?;
    }
    Ok(())
}

/// A model at a glance.
struct Report {
    architecture: Option<String>,
    name: String,
    variant: &'static str,
    parameters: u64,
    bytes: u64,
    tensor_bytes: u64,
    context_length: Option<u32>,
    layers: Option<u32>,
    /// Towers in the model's own file.
    towers: Vec<&'static str>,
    /// What the model takes besides text, with the towers of its entry in the store.
    media: Vec<Medium>,
    formats: BTreeMap<&'static str, u64>,
    tensors: u64,
    version: u32,
    parts: usize,
    data_start: u64,
    /// The blobs of a model in the store, with their kinds.
    extra: Vec<(&'static str, String)>,
    /// Why this Gemma 4 model can't run, if it can't.
    problem: Option<String>,
    /// Warnings about the file.
    warnings: Vec<String>,
}

impl Report {
    fn of(opened: &Opened, media: Vec<Medium>) -> Self {
        let model = &opened.model;
        let metadata = model.metadata();
        let string = |key| metadata.optional_str(key).ok().flatten().map(str::to_owned);
        let architecture = string("general.architecture");
        let section = architecture.clone().unwrap_or_default();
        let number = |key| metadata.section(&section).optional_u32(key).ok().flatten();
        let mut formats = BTreeMap::new();
        for tensor in model.tensors() {
            *formats.entry(tensor.format.name()).or_insert(0) += 1;
        }
        let mut extra = Vec::new();
        if let Some(stored) = &opened.stored {
            let mut add = |what, blob: &rullama_gguf::ollama::Blob| {
                extra.push((what, blob.path.display().to_string()));
            };
            add("weights", &stored.weights);
            stored.projector.iter().for_each(|blob| add("projector", blob));
            stored.draft.iter().for_each(|blob| add("draft", blob));
            stored.adapters.iter().for_each(|blob| add("adapter", blob));
        }
        let config = Config::read(model).ok();
        let problem = config.as_ref().and_then(|config| text(model, config, Outputs::Last).err());
        let warnings = config.map(|config| warnings(model, &config)).unwrap_or_default();
        Self {
            problem: problem.map(|problem| problem.to_string()),
            warnings: warnings.iter().map(ToString::to_string).collect(),
            variant: family::variant(model),
            parameters: family::parameters(model),
            bytes: model.source().len(),
            tensor_bytes: model.tensors().fold(0, |sum: u64, tensor| sum.saturating_add(tensor.bytes)),
            context_length: number("context_length"),
            layers: number("block_count"),
            towers: Medium::of(model).into_iter().map(Medium::as_str).collect(),
            media,
            name: string("general.name").unwrap_or_else(|| opened.name.clone()),
            formats,
            tensors: model.tensors().count() as u64,
            version: model.header().version(),
            parts: model.part_count(),
            data_start: model.header().data_start(),
            architecture,
            extra,
        }
    }

    fn json(&self) -> Map<String, Json> {
        let value = json!({
            "architecture": self.architecture,
            "name": self.name,
            "variant": self.variant,
            "parameters": self.parameters,
            "bytes": self.bytes,
            "context_length": self.context_length,
            "layers": self.layers,
            "towers": self.towers,
            "media": media::json_about(&self.media),
            "formats": self.formats,
            "tensor_count": self.tensors,
            "tensor_bytes": self.tensor_bytes,
            "gguf_version": self.version,
            "parts": self.parts,
            "data_start": self.data_start,
            "problem": self.problem,
            "warnings": self.warnings,
        });
        let Json::Object(mut value) = value else { unreachable!("the macro was given an object") };
        for (what, path) in &self.extra {
            let list = value.entry("blobs").or_insert_with(|| json!([]));
            if let Some(list) = list.as_array_mut() {
                list.push(json!({ "kind": what, "path": path }));
            }
        }
        value
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let or_unknown =
            |number: Option<u32>| number.map_or("unknown".to_owned(), |number| number.to_string());
        let formats: Vec<String> =
            self.formats.iter().map(|(name, count)| format!("{name} × {count}")).collect();
        let mut rows = vec![
            ("name", self.name.clone()),
            ("architecture", self.architecture.clone().unwrap_or_else(|| "unknown".to_owned())),
            ("variant", self.variant.to_owned()),
            ("parameters", output::count(self.parameters)),
            ("size", output::size(self.bytes)),
            ("context", or_unknown(self.context_length)),
            ("layers", or_unknown(self.layers)),
            ("tensors", format!("{} ({})", self.tensors, output::size(self.tensor_bytes))),
            ("formats", formats.join(", ")),
            (
                "file",
                match self.parts {
                    1 => format!("GGUF version {}", self.version),
                    parts => format!("GGUF version {}, in {parts} parts", self.version),
                },
            ),
        ];
        if !self.towers.is_empty() {
            rows.push(("towers", self.towers.join(", ")));
        }
        rows.extend(media::rows_about(&self.media));
        rows.extend(self.extra.iter().cloned());
        rows.extend(self.problem.iter().map(|problem| ("problem", problem.clone())));
        rows.extend(self.warnings.iter().map(|warning| ("warning", warning.clone())));
        rows.into_iter().map(|(what, value)| vec![what.to_owned(), value]).collect()
    }
}

fn tensors_json(model: &Model) -> Json {
    model
        .tensors()
        .map(|tensor| {
            let mut value = json!({
                "name": tensor.name,
                "shape": tensor.shape.dims(),
                "format": tensor.format.name(),
                "offset": tensor.offset,
                "bytes": tensor.bytes,
            });
            if model.part_count() > 1 {
                value["part"] = tensor.part.into();
            }
            value
        })
        .collect()
}

fn tensor_rows(model: &Model) -> Vec<Vec<String>> {
    let head = ["TENSOR", "SHAPE", "FORMAT", "OFFSET", "BYTES"].map(String::from).to_vec();
    let rows = model.tensors().map(|tensor| {
        vec![
            tensor.name.to_owned(),
            tensor.shape.to_string(),
            tensor.format.to_string(),
            tensor.offset.to_string(),
            tensor.bytes.to_string(),
        ]
    });
    std::iter::once(head).chain(rows).collect()
}

fn metadata_json(model: &Model) -> Json {
    let entries = model.header().entries().map(|(key, value)| (key.to_owned(), value_json(value)));
    Json::Object(entries.collect())
}

fn metadata_rows(model: &Model) -> Vec<Vec<String>> {
    let head = vec!["KEY".to_owned(), "VALUE".to_owned()];
    let rows = model.header().entries().map(|(key, value)| vec![key.to_owned(), shortened(value)]);
    std::iter::once(head).chain(rows).collect()
}

/// A value as JSON. Numbers that JSON cannot hold become text, so that nothing is lost silently.
fn value_json(value: Value<'_>) -> Json {
    match value {
        Value::U8(v) => v.into(),
        Value::I8(v) => v.into(),
        Value::U16(v) => v.into(),
        Value::I16(v) => v.into(),
        Value::U32(v) => v.into(),
        Value::I32(v) => v.into(),
        Value::U64(v) => v.into(),
        Value::I64(v) => v.into(),
        Value::F32(v) => float_json(f64::from(v), v.to_string()),
        Value::F64(v) => float_json(v, v.to_string()),
        Value::Bool(v) => v.into(),
        Value::String(bytes) => String::from_utf8_lossy(bytes).into(),
        Value::Array(array) if array.len() > LONGEST_ARRAY => {
            json!({ "array_of": type_name(array), "length": array.len() })
        }
        Value::Array(array) => array.iter().map(value_json).collect(),
    }
}

/// The shortest text that parses to the same number, so that 1e-6 as f32 is shown as 1e-6.
fn float_json(value: f64, shortest: String) -> Json {
    match shortest.parse::<f64>().ok().and_then(serde_json::Number::from_f64) {
        Some(number) if value.is_finite() => Json::Number(number),
        _ => shortest.into(),
    }
}

fn type_name(array: Array<'_>) -> String {
    let name = array.element_type().to_string();
    name.split_once(' ').map_or(name.clone(), |(_, bare)| bare.to_owned())
}

/// A value on one line.
fn shortened(value: Value<'_>) -> String {
    let text = match value {
        Value::Array(array) if array.len() > LONGEST_ARRAY => {
            format!("{} values of type {}", array.len(), type_name(array))
        }
        other => value_json(other).to_string(),
    };
    let mut characters = text.chars();
    let start: String = characters.by_ref().take(100).collect();
    if characters.next().is_none() { start } else { format!("{start}…") }
}
