//! `rullama models`.

use std::time::{SystemTime, UNIX_EPOCH};

use rullama_gguf::ollama::{BrokenModel, Listing, Name, Store, StoreError, Summary};
use serde_json::{Value, json};

use crate::{arguments::ModelsArguments, failure::Failure, model, output};

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
            anstream::eprintln!("every blob has the content it is named after");
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
            "no models in {}; `ollama pull gemma4:e2b` downloads one",
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
            model.modified.map(date).unwrap_or_default(),
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
        "modified_at": model.modified.map(|time| format!("{}Z", date_and_time(time))),
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

fn date(time: SystemTime) -> String {
    date_and_time(time)[..10].to_owned()
}

/// A moment as `2026-08-22T10:05:00`, in UTC.
fn date_and_time(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// Year, month and day of a day counted from 1970-01-01.
///
/// Years are counted from March, so that the leap day is a year's last, and in cycles of 400.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // from 0000-03-01
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (400 * cycle + year + carry, month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn moments_are_written_as_dates() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_399, "2000-02-28T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (1_709_251_200, "2024-03-01T00:00:00"),
            (4_102_444_799, "2099-12-31T23:59:59"),
        ] {
            assert_eq!(date_and_time(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
