//! Models on the GPU.

use rullama_engine::{Engine, Unsteady};
use rullama_gguf::Model;
use rullama_gpu::Gpu;
use serde_json::{Value, json};

use crate::{
    error::{Failure, Thrown, failure},
    examination,
    host::milliseconds,
    info,
    options::LoadRequest,
};

/// What a load holds until it has succeeded.
pub(crate) type Held = Opened;

/// Loads a model, and tells how far that is.
pub(crate) async fn load(
    model: Model,
    request: &LoadRequest,
    thrown: &Thrown,
    tell: &dyn Fn(&str, u64, u64),
) -> Result<(Engine, Held), Failure> {
    // Kernels are compiled in two steps: those of the self-test before the upload, and the model's own after it.
    tell("compile", 0, 2);
    let gpu = Gpu::open(&request.gpu()).await.map_err(failure)?;
    let opened = Opened::new(gpu.clone());
    let mut tested = false;
    let mut uploaded = |done, all| {
        if !std::mem::replace(&mut tested, true) {
            tell("compile", 1, 2);
        }
        tell("upload", done, all);
    };
    let mut options = request.load()?;
    if request.gives_up() {
        options.unsteady = Unsteady::GiveUp { seconds: || milliseconds() / 1000.0 };
    }
    let engine = Engine::load_on(gpu, model, &options, &mut uploaded).await;
    Ok((engine.map_err(|error| thrown.failure(error))?, opened))
}

/// Releases a GPU when the call that opened it ends, fails or is cancelled. A browser alone would free its memory much later.
pub(crate) struct Opened(Option<Gpu>);

impl Opened {
    pub(crate) fn new(gpu: Gpu) -> Self {
        Self(Some(gpu))
    }

    pub(crate) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(gpu) = &self.0 {
            gpu.destroy();
        }
    }
}

/// Adds what only a GPU's model has.
pub(crate) fn describe(engine: &Engine, info: &mut Value) {
    let Some(model) = engine.gpu_model() else { return };
    info["gpu"] = info::of_gpu(model.gpu().profile());
    info["residency"] = model.residency().as_str().into();
    info["memory"] = info::of_memory(model.budget());
    info["memory"]["total"] = model.budget().total().into();
    info["conversions"] = info::conversions(&model.conversions());
    info["fallbacks"] = model.fallbacks().iter().map(ToString::to_string).collect();
}

/// What a load with these options would do, as far as the header tells.
pub(crate) async fn inspect(
    model: Model,
    request: &LoadRequest,
    thrown: &Thrown,
    report: &mut Value,
) -> Result<(), Failure> {
    let gpu = Gpu::open(&request.gpu()).await.map_err(failure)?;
    let _opened = Opened::new(gpu.clone());
    let found = Engine::inspect_on(&gpu, &model, &request.load()?).await;
    let found = found.map_err(|error| thrown.failure(error))?;
    let fit = &found.fit;
    report["contextLength"] = found.config.context_length.into();
    report["context"] = found.context.into();
    report["largestContext"] = fit.largest_context.into();
    report["residency"] = fit.residency.as_str().into();
    let mut memory = info::of_memory(&fit.budget);
    memory["needed"] = fit.budget.total().into();
    memory["available"] = json!(request.memory());
    report["memory"] = memory;
    report["conversions"] = info::conversions(&fit.conversions);
    report["warnings"] = found.warnings.iter().map(ToString::to_string).collect();
    Ok(())
}

/// The kernels that the model runs.
pub(crate) fn kernels(engine: &Engine) -> Result<Value, Failure> {
    let chosen = engine.gpu_model().map(|model| examination::kernels(&model)).transpose()?;
    Ok(chosen.unwrap_or_default())
}

/// Frees the GPU's memory at once.
pub(crate) fn unload(engine: &Engine) {
    if let Some(model) = engine.gpu_model() {
        model.gpu().destroy();
    }
}
