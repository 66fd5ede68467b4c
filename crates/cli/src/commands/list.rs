//! `rullama list`: the models in the Ollama store.

use rullama_gguf::ollama::{BrokenModel, Listing, Name, Store, StoreError, Summary};
use serde_json::{Value, json};

use crate::{arguments::ListArguments, failure::Failure, model, output};

pub(super) fn run(arguments: &ListArguments) -> Result<(), Failure> {
    let store = model::store();
    let mut listing = match store.list() {
        // Having no models is not an error, but asking for one by name is.
        Err(StoreError::NoStore { .. }) if arguments.names.is_empty() => Listing::default(),
        listing => listing?,
    };
    if !arguments.names.is_empty() {
        listing = chosen(&store, listing, &arguments.names)?;
    }
    if arguments.verify {
        verify(&store, &mut listing);
    }
    if arguments.json {
        output::json(&as_json(&store, &listing))?;
    } else {
        print(&store, &listing)?;
        if arguments.verify && listing.broken.is_empty() {
            output::note("all files match their digests");
        }
    }
    if arguments.verify && !listing.broken.is_empty() {
        let models = if listing.broken.len() == 1 { "model is" } else { "models are" };
        return Err(Failure::new(format!("{} {models} damaged or incomplete", listing.broken.len()))
            .hint("delete the model with `rullama rm` and download it again with `ollama pull`"));
    }
    Ok(())
}

/// The models with these names. A name that the store does not have is an error.
fn chosen(store: &Store, listing: Listing, names: &[String]) -> Result<Listing, Failure> {
    let mut wanted = Vec::new();
    for name in names {
        let name: Name = name.parse()?;
        let same = |other: &Name| other.full().eq_ignore_ascii_case(&name.full());
        let known = listing.models.iter().map(|model| &model.name);
        let broken = listing.broken.iter().map(|model| &model.name);
        match known.chain(broken).find(|other| same(other)) {
            Some(found) => wanted.push(found.clone()),
            None => {
                let manifest = store.root().join("manifests").join(name.manifest_path());
                return Err(StoreError::ModelNotFound { name: name.to_string(), manifest }.into());
            }
        }
    }
    Ok(Listing {
        models: listing.models.into_iter().filter(|model| wanted.contains(&model.name)).collect(),
        broken: listing.broken.into_iter().filter(|model| wanted.contains(&model.name)).collect(),
    })
}

/// Reads every blob of every model, and moves damaged models to the list of broken ones.
fn verify(store: &Store, listing: &mut Listing) {
    let models = std::mem::take(&mut listing.models);
    for summary in models {
        match verify_model(store, &summary.name) {
            // A cloud model has no files here.
            Ok(()) | Err(StoreError::Remote { .. } | StoreError::NoWeights { .. }) => {
                listing.models.push(summary);
            }
            Err(error) => listing.broken.push(BrokenModel { name: summary.name, error }),
        }
    }
}

fn verify_model(store: &Store, name: &Name) -> Result<(), StoreError> {
    let model = store.model(name)?;
    let blobs = [Some(&model.weights), model.projector.as_ref(), model.draft.as_ref()];
    for blob in blobs.into_iter().flatten().chain(&model.adapters) {
        let bar = model::progress(&name.to_string(), blob.size);
        let result = store.verify(blob, |done| bar.set_position(done));
        bar.finish_and_clear();
        result?;
    }
    Ok(())
}

fn print(store: &Store, listing: &Listing) -> Result<(), Failure> {
    if listing.models.is_empty() && listing.broken.is_empty() {
        return Ok(output::line(&nothing(store))?);
    }
    let mut rows =
        vec![["NAME", "SIZE", "PARAMETERS", "FORMAT", "FAMILY", "MODIFIED"].map(String::from).to_vec()];
    for model in &listing.models {
        let config = &model.config;
        let format = if config.file_type.is_empty() { &config.model_format } else { &config.file_type };
        rows.push(vec![
            model.name.to_string(),
            output::size(model.size),
            config.model_type.clone(),
            format.clone(),
            config.model_family.clone(),
            model.modified.map(output::date).unwrap_or_default(),
        ]);
    }
    if !listing.models.is_empty() {
        output::table(&rows)?;
    }
    let broken =
        listing.broken.iter().map(|broken| vec![format!("{} can't be used: {}", broken.name, broken.error)]);
    Ok(output::table(&broken.collect::<Vec<_>>())?)
}

/// How to get a first model.
fn nothing(store: &Store) -> String {
    format!(
        "No models yet: {} {}.\n\n\
         rullama uses the models that Ollama downloads. Install Ollama from https://ollama.com, then run:\n\n  \
         ollama pull gemma4:e2b\n\n\
         If your models are somewhere else, set OLLAMA_MODELS to that folder.\n\
         You can also use a GGUF file (`rullama run FILE.gguf`) or the built-in demo model (`rullama run`).",
        store.root().display(),
        if store.root().exists() { "has no models" } else { "does not exist" },
    )
}

/// The format of Ollama's `/api/tags`, with the store's folder and its broken models.
fn as_json(store: &Store, listing: &Listing) -> Value {
    let models: Vec<Value> = listing.models.iter().map(summary_json).collect();
    let broken: Vec<Value> = listing
        .broken
        .iter()
        .map(|broken| {
            json!({
                "name": broken.name.to_string(),
                "code": broken.error.code(),
                "error": broken.error.to_string(),
            })
        })
        .collect();
    json!({ "store": store.root().display().to_string(), "models": models, "broken": broken })
}

fn summary_json(model: &Summary) -> Value {
    let config = &model.config;
    let families = config.model_families.clone().unwrap_or_else(|| vec![config.model_family.clone()]);
    json!({
        "name": model.name.to_string(),
        "model": model.name.to_string(),
        "modified_at": model.modified.map(output::timestamp),
        "size": model.size,
        "digest": model.digest.hex(),
        "details": {
            "format": config.model_format,
            "family": config.model_family,
            "families": families,
            "parameter_size": config.model_type,
            "quantization_level": config.file_type,
        },
    })
}
