//! `rullama models`.

use rullama_gguf::ollama::{BrokenModel, Listing, Name, Store, StoreError, Summary};
use serde_json::{Value, json};

use crate::{arguments::ModelsArguments, failure::Failure, model, moment, output};

pub(super) fn run(arguments: &ModelsArguments) -> Result<(), Failure> {
    let store = model::store();
    let mut listing = store.list()?;
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
            output::note("every blob has the content it is named after");
        }
    }
    if arguments.verify && !listing.broken.is_empty() {
        return Err(Failure::new(format!("{} of the models cannot be used", listing.broken.len()))
            .hint("`ollama pull` downloads a model again; delete a damaged blob first"));
    }
    Ok(())
}

/// The part of a listing that was asked for; a name that is not in it is an error.
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

/// Reads every blob of every model; those that are not whole move to the broken ones.
fn verify(store: &Store, listing: &mut Listing) {
    let models = std::mem::take(&mut listing.models);
    for summary in models {
        match verify_model(store, &summary.name) {
            // A model that runs elsewhere has nothing here that could be damaged.
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
        return Ok(output::line(&format!(
            "no models in {}; `ollama pull gemma4:e2b` downloads one, and `rullama run` has a demo model of its own",
            store.root().display()
        ))?);
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
            model.modified.map(moment::date).unwrap_or_default(),
        ]);
    }
    if !listing.models.is_empty() {
        output::table(&rows)?;
    }
    let broken =
        listing.broken.iter().map(|broken| vec![format!("{} cannot be used: {}", broken.name, broken.error)]);
    Ok(output::table(&broken.collect::<Vec<_>>())?)
}

/// The shape of Ollama's `/api/tags`, with the store's folder and what is broken in it.
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
        "modified_at": model.modified.map(|time| format!("{}Z", moment::date_and_time(time))),
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
