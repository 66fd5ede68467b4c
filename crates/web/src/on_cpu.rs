//! Models on the CPU, for browsers without WebGPU. Weights are read when they are first needed and stay in wasm's memory.

use rullama_engine::{CacheFormat, Engine};
use rullama_gguf::Model;
use serde_json::{Value, json};

use crate::{
    error::{Failure, Thrown, failure},
    options::LoadRequest,
};

/// What a load holds until it has succeeded: nothing.
pub(crate) struct Held;

impl Held {
    pub(crate) fn keep(self) {}
}

/// Loads a model. Its weights are read by the first step, which every load takes.
pub(crate) async fn load(
    model: Model,
    request: &LoadRequest,
    thrown: &Thrown,
    tell: &dyn Fn(&str, u64, u64),
) -> Result<(Engine, Held), Failure> {
    tell("compile", 0, 2);
    let engine = Engine::load(model, &request.load()?).map_err(|error| thrown.failure(error))?;
    // Nothing is copied elsewhere. What is read from a server is told as a download.
    tell("upload", 1, 1);
    Ok((engine, Held))
}

/// Adds what only a model on the CPU has.
pub(crate) fn describe(engine: &Engine, info: &mut Value) {
    info["gpu"] = Value::Null;
    info["residency"] = "cpu".into();
    info["memory"] = memory(engine, info["bytes"].as_u64().unwrap_or_default());
    info["conversions"] = json!([]);
    info["fallbacks"] = json!([]);
    info["backend"] = json!({ "threads": threads() });
}

/// Threads that compute.
fn threads() -> usize {
    cfg_select! {
        target_feature = "atomics" => rullama_cpu::threads::count(),
        _ => 1,
    }
}

/// What a load with these options would do, as far as the header tells.
pub(crate) async fn inspect(
    model: Model,
    request: &LoadRequest,
    thrown: &Thrown,
    report: &mut Value,
) -> Result<(), Failure> {
    let bytes = Engine::cpu_weight_bytes(&model).map_err(failure)?;
    let engine = Engine::load(model, &request.load()?).map_err(|error| thrown.failure(error))?;
    report["contextLength"] = engine.config().context_length.into();
    report["context"] = engine.context().into();
    report["largestContext"] = engine.config().context_length.into();
    report["residency"] = "cpu".into();
    // More than the limit is never held, but read again for each token: whoever sets no limit learns how much that is.
    let most = request.memory().unwrap_or(u64::MAX);
    let mut memory = memory(&engine, bytes.min(most));
    memory["needed"] = memory["total"].take();
    memory["available"] = json!(request.memory());
    report["memory"] = memory;
    report["conversions"] = json!([]);
    report["warnings"] = engine.warnings().iter().map(ToString::to_string).collect();
    Ok(())
}

/// What a model whose weights have so many bytes takes of wasm's memory, with one conversation that fills its context. Caches
/// grow with the conversation; the values of a step are small.
fn memory(engine: &Engine, weights: u64) -> Value {
    let caches = engine.cpu_cache_bytes(CacheFormat::F16);
    json!({ "weights": weights, "caches": caches, "scratch": 0, "staging": 0, "total": weights + caches })
}

/// There are no kernels to name.
pub(crate) fn kernels(_engine: &Engine) -> Result<Value, Failure> {
    Ok(json!([]))
}

/// Wasm's memory never shrinks; what the engine held is free for the next model when it is dropped.
pub(crate) fn unload(_engine: &Engine) {}
