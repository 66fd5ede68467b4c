//! What a model and its GPU are, as JSON.

use rullama_engine::Engine;
use rullama_gguf::Model;
use rullama_gpu::DeviceProfile;
use serde_json::{Value, json};

use crate::host;

/// What only the file knows, taken before the engine has it.
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

/// The whole, `file` included.
pub(crate) fn of_engine(engine: &Engine, file: &Value) -> Value {
    let config = engine.config();
    let mut info = file.clone();
    info["context"] = engine.context().into();
    info["trainedContext"] = config.context_length.into();
    info["vocabulary"] = config.vocabulary.into();
    info["layers"] = config.layers.len().into();
    info["wasmMemory"] = host::memory().into();
    info["warnings"] = engine.warnings().iter().map(ToString::to_string).collect();
    let Some(model) = engine.gpu_model() else { return info };
    let (profile, budget) = (model.gpu().profile(), model.budget());
    info["gpu"] = of_gpu(profile);
    info["residency"] = model.residency().as_str().into();
    info["memory"] = json!({
        "weights": budget.weights,
        "caches": budget.caches,
        "scratch": budget.scratch,
        "staging": budget.staging,
        "total": budget.total(),
    });
    let conversion = |conversion: &rullama_gpu::weights::Conversion| {
        json!({
            "tensor": conversion.tensor,
            "from": conversion.from.name(),
            "to": conversion.to.name(),
        })
    };
    info["conversions"] = model.conversions().iter().map(conversion).collect();
    info["fallbacks"] = model.fallbacks().iter().map(ToString::to_string).collect();
    info
}
