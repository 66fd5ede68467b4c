//! The models that the server offers: those of Ollama stores, files given with `--model`, and the demo model.
//!
//! A request contains a name, never a path. The name leads to a manifest, the manifest to a digest, and the digest to a
//! blob. Only weights and projectors are opened, and only if they are GGUF files, so that even a manipulated manifest can
//! make the server send nothing but models.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use axum::{
    extract::{Request, State},
    response::Response,
};
use rullama_gguf::{
    Model, SplitName,
    ollama::{Blob, Digest, Name, Store, StoredModel},
    open_path,
};
use serde::Serialize;
use serde_json::json;

use super::{
    Shared, SharedState,
    digest::KnownDigest,
    error::{Problem, json_response},
    file::{self, Content, OpenFile},
    path,
};
use crate::{demo::Demo, failure::Failure, family, output};

/// The models that the server offers.
pub(crate) struct Catalogue {
    /// If several stores have a model of the same name, the first complete one is used.
    pub(crate) stores: Vec<Store>,
    pub(crate) files: Vec<ModelFile>,
}

/// A GGUF file given with `--model`, or the demo model.
pub(crate) struct ModelFile {
    /// Its name without folders.
    pub(crate) name: String,
    place: Place,
    family: String,
    parameters: String,
    format: String,
    /// Only for the demo model, which is small enough to be hashed.
    digest: Option<KnownDigest>,
}

/// Where a model's bytes are.
enum Place {
    File(PathBuf),
    /// In the program.
    Embedded(&'static [u8]),
}

/// A model in the list.
#[derive(Serialize)]
pub(crate) struct Entry {
    name: String,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    url: String,
    family: String,
    parameters: String,
    format: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    projector: Option<Projector>,
}

/// Vision and audio towers in a separate file.
#[derive(Serialize)]
struct Projector {
    bytes: u64,
    sha256: String,
    url: String,
}

/// Which file of a model.
#[derive(Clone, Copy)]
enum Part {
    Weights,
    Projector,
}

pub(super) async fn list(State(shared): SharedState) -> Result<Response, Problem> {
    let listed = tokio::task::spawn_blocking(move || shared.catalogue.entries());
    let entries = listed.await.map_err(|_| Problem::internal("the models can't be listed"))?;
    Ok(json_response(&json!({ "models": entries })))
}

pub(super) async fn weights(State(shared): SharedState, request: Request) -> Result<Response, Problem> {
    serve(shared, request, "/models/", Part::Weights).await
}

pub(super) async fn projector(State(shared): SharedState, request: Request) -> Result<Response, Problem> {
    serve(shared, request, "/projectors/", Part::Projector).await
}

async fn serve(shared: Arc<Shared>, request: Request, prefix: &str, part: Part) -> Result<Response, Problem> {
    let nothing = || Problem::not_found("there is no such model; /api/models lists the models");
    let name = request.uri().path().strip_prefix(prefix).and_then(path::decode).ok_or_else(nothing)?;
    let opened = tokio::task::spawn_blocking(move || shared.catalogue.open(&name, part)).await;
    let opened = opened.map_err(|_| Problem::internal("the model can't be read"))?.ok_or_else(nothing)?;
    Ok(file::respond(request.method(), request.headers(), opened))
}

impl Catalogue {
    /// All models, sorted by name, without cloud models and incomplete ones.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let files = self.files.iter().filter_map(ModelFile::entry);
        let stored = self.stores.iter().flat_map(|store| {
            let summaries = store.list().unwrap_or_default().models;
            summaries.into_iter().filter_map(|summary| whole(store, &summary.name))
        });
        let mut entries = BTreeMap::new();
        for entry in files.chain(stored.map(stored_entry)) {
            entries.entry(entry.name.clone()).or_insert(entry);
        }
        entries.into_values().collect()
    }

    fn open(&self, name: &str, part: Part) -> Option<OpenFile> {
        if let Some(model) = self.files.iter().find(|model| model.name == name) {
            return match part {
                Part::Weights => Some(model.open()?.0),
                Part::Projector => None,
            };
        }
        let name: Name = name.parse().ok()?;
        // As in the list: a damaged model does not hide a complete one in the next store.
        let model = self.stores.iter().find_map(|store| whole(store, &name))?;
        let blob = match part {
            Part::Weights => model.weights,
            Part::Projector => model.projector?,
        };
        open_model(&blob.path, Some(&blob))
    }
}

/// A model of a store, if its weights exist and are a GGUF file.
fn whole(store: &Store, name: &Name) -> Option<StoredModel> {
    let model = store.model(name).ok()?;
    open_model(&model.weights.path, Some(&model.weights))?;
    Some(model)
}

fn stored_entry(model: StoredModel) -> Entry {
    let name = model.name.to_string();
    let projector = model.projector.map(|blob| Projector {
        bytes: blob.size,
        sha256: blob.digest.hex(),
        url: format!("/projectors/{}", path::encode(&name)),
    });
    Entry {
        bytes: model.weights.size,
        sha256: Some(model.weights.digest.hex()),
        url: format!("/models/{}", path::encode(&name)),
        family: model.config.model_family,
        parameters: model.config.model_type,
        format: model.config.file_type,
        projector,
        name,
    }
}

/// Opens a file that begins like GGUF and has the size that its manifest says, if there is a manifest.
fn open_model(path: &Path, blob: Option<&Blob>) -> Option<OpenFile> {
    let (mut file, metadata) = file::open(path).ok()?;
    let size = metadata.len();
    if !begins_like_gguf(&mut file) || blob.is_some_and(|blob| blob.size != size) {
        return None;
    }
    let tag = match blob {
        Some(blob) => strong_tag(&blob.digest),
        None => file::weak_tag(&metadata),
    };
    // The app stores models itself; the browser's cache would store the gigabytes again.
    let cache_control = "no-store";
    let content = Content::File(file);
    Some(OpenFile { content, size, tag, content_type: "application/octet-stream", cache_control })
}

/// The demo model inside the program. Its digest later replaces this tag.
fn open_embedded(bytes: &'static [u8]) -> OpenFile {
    OpenFile {
        content: Content::Memory(bytes),
        size: bytes.len() as u64,
        tag: "W/\"embedded\"".to_owned(),
        content_type: "application/octet-stream",
        cache_control: "no-store",
    }
}

/// The strong tag of a file with this digest.
fn strong_tag(digest: &Digest) -> String {
    format!("\"{digest}\"")
}

fn begins_like_gguf(file: &mut File) -> bool {
    let mut magic = [0; 4];
    file.read_exact(&mut magic).is_ok() && magic == *b"GGUF"
}

impl ModelFile {
    /// Reads the header of a file.
    pub(crate) async fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if SplitName::parse(&path.to_string_lossy()).is_some() {
            return Err(Failure::new(format!(
                "`{name}` is one part of a split model, which can't be served"
            ))
            .hint("merge the parts with `llama-gguf-split --merge`"));
        }
        let model = open_path(path).await?;
        Ok(Self::new(name, Place::File(path.to_owned()), &model))
    }

    /// The demo model, with its digest, which is computed when a client first asks for it.
    pub(crate) async fn demo(demo: &Demo) -> Result<Self, Failure> {
        let model = demo.open().await?;
        let place = match demo {
            Demo::File(path) => Place::File(path.clone()),
            Demo::Embedded(bytes) => Place::Embedded(bytes),
        };
        let file = Self::new(demo.file_name().into_owned(), place, &model);
        Ok(Self { digest: Some(KnownDigest::default()), ..file })
    }

    fn new(name: String, place: Place, model: &Model) -> Self {
        Self {
            name,
            place,
            family: model
                .metadata()
                .optional_str("general.architecture")
                .ok()
                .flatten()
                .unwrap_or_default()
                .to_owned(),
            parameters: output::count(family::parameters(model)),
            format: family::main_format(model).to_owned(),
            digest: None,
        }
    }

    fn open(&self) -> Option<(OpenFile, Option<Digest>)> {
        let mut opened = match &self.place {
            Place::File(path) => open_model(path, None)?,
            Place::Embedded(bytes) => open_embedded(bytes),
        };
        let digest = self.digest.as_ref().and_then(|known| known.of(&mut opened));
        if let Some(digest) = digest {
            opened.tag = strong_tag(&digest);
        }
        Some((opened, digest))
    }

    fn entry(&self) -> Option<Entry> {
        let (opened, digest) = self.open()?;
        Some(Entry {
            name: self.name.clone(),
            bytes: opened.size,
            sha256: digest.map(|digest| digest.hex()),
            url: format!("/models/{}", path::encode(&self.name)),
            family: self.family.clone(),
            parameters: self.parameters.clone(),
            format: self.format.clone(),
            projector: None,
        })
    }
}
