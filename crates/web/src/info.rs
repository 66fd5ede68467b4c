//! What a model and what computes it are, as JSON.

use std::collections::BTreeMap;

use rullama_engine::{Engine, Medium};
use rullama_gguf::{Mix, Model};
#[cfg(feature = "gpu")]
use rullama_gpu::{Budget, DeviceProfile, weights::Conversion};
use rullama_media::{Budget as ImageBudget, MAX_CLIP, SAMPLE_RATE};
use serde_json::{Value, json};

use crate::{backend, host};

/// What only the file knows. The engine does not keep it, so this is called before the engine takes the model.
pub(crate) fn of_file(model: &Model) -> Value {
    let text = |key| model.metadata().optional_str(key).ok().flatten();
    let parameters = model.tensors().fold(0, |sum: u64, tensor| sum.saturating_add(tensor.shape.values()));
    json!({
        "name": text("general.name").unwrap_or(model.source().name()),
        "architecture": text("general.architecture"),
        "parameters": parameters,
        "bytes": model.source().len(),
    })
}

/// The quantisation by the name that model files carry, such as `Q4_K_M`; for a mix without a name here, the format that most
/// bytes have.
pub(crate) fn format(model: &Model) -> String {
    let stated = model.metadata().optional_u32("general.file_type").ok().flatten();
    let mix = stated.and_then(|number| Mix::ALL.into_iter().find(|mix| mix.file_type() == number));
    let mut bytes: BTreeMap<&str, u64> = BTreeMap::new();
    for tensor in model.tensors() {
        *bytes.entry(tensor.format.name()).or_default() += tensor.bytes;
    }
    let most = bytes.into_iter().max_by_key(|&(_, bytes)| bytes).map_or("", |(name, _)| name);
    mix.map_or(most, Mix::name).to_uppercase()
}

#[cfg(feature = "gpu")]
pub(crate) fn of_gpu(profile: &DeviceProfile) -> Value {
    json!({
        "name": profile.name,
        "subgroups": profile.subgroups,
        "halfPrecision": profile.half_precision,
        "timestamps": profile.timestamps,
        "largestBinding": profile.largest_binding,
        "largestBuffer": profile.largest_buffer,
        "workgroupMemory": profile.workgroup_memory,
    })
}

/// What a model and one conversation take, by purpose.
#[cfg(feature = "gpu")]
pub(crate) fn of_memory(budget: &Budget) -> Value {
    json!({
        "weights": budget.weights,
        "caches": budget.caches,
        "scratch": budget.scratch,
        "staging": budget.staging,
    })
}

#[cfg(feature = "gpu")]
pub(crate) fn conversions(conversions: &[Conversion]) -> Value {
    let conversion = |conversion: &Conversion| {
        json!({
            "tensor": conversion.tensor,
            "from": conversion.from.name(),
            "to": conversion.to.name(),
        })
    };
    conversions.iter().map(conversion).collect()
}

/// What a model takes besides text, and the limits of that.
pub(crate) fn of_media(media: &[Medium]) -> Value {
    json!({
        "image": media.contains(&Medium::Vision),
        "audio": media.contains(&Medium::Audio),
        "imageBudgets": ImageBudget::ALL.map(ImageBudget::soft_tokens),
        "defaultImageBudget": ImageBudget::default().soft_tokens(),
        "longestSound": MAX_CLIP as f64 / f64::from(SAMPLE_RATE),
    })
}

/// Everything about a loaded model, `file` included.
pub(crate) fn of_engine(engine: &Engine, file: &Value) -> Value {
    let config = engine.config();
    let mut info = file.clone();
    info["context"] = engine.context().into();
    info["trainedContext"] = config.context_length.into();
    info["vocabulary"] = config.vocabulary.into();
    info["layers"] = config.layers.len().into();
    info["media"] = of_media(engine.media());
    info["wasmMemory"] = host::memory().into();
    info["warnings"] = engine.warnings().iter().map(ToString::to_string).collect();
    backend::describe(engine, &mut info);
    info
}
