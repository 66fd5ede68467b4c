//! Whether a model can be loaded, from its header alone.

use js_sys::Promise;
use rullama_engine::Engine;
use rullama_gpu::Gpu;
use serde_json::{Value, json};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::{
    Cancel, JsByteSource,
    engine::{Opened, open},
    error::{Failure, Thrown, failure},
    info,
    options::LoadRequest,
};

/// Makes every check that loading makes before it reads weights, and fails as loading would. Reads only the header of each
/// file. The options are those of loading; the report is JSON.
#[wasm_bindgen(unchecked_return_type = "Promise<string>")]
pub fn inspect(sources: Vec<JsByteSource>, options: String, cancel: &Cancel) -> Promise {
    let cancel = cancel.clone();
    future_to_promise(async move {
        let request = LoadRequest::parse(&options)?;
        let report = cancel.unless(report(sources, &request)).await?;
        Ok(report.to_string().into())
    })
}

async fn report(sources: Vec<JsByteSource>, request: &LoadRequest) -> Result<Value, Failure> {
    let thrown = Thrown::default();
    let model = open(sources, &thrown).await.map_err(|error| thrown.failure(error))?;
    let gpu = Gpu::open(&request.gpu()).await.map_err(failure)?;
    let _opened = Opened::new(gpu.clone());
    let found = Engine::inspect_on(&gpu, &model, &request.load()?).await;
    let found = found.map_err(|error| thrown.failure(error))?;
    let (fit, mut report) = (&found.fit, info::of_file(&model));
    report["format"] = info::format(&model).into();
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
    Ok(report)
}
