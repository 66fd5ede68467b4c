//! Whether a model can be loaded, from its header alone.

use js_sys::Promise;
use rullama_engine::Medium;
use serde_json::Value;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::{
    Cancel, JsByteSource, backend,
    engine::open,
    error::{Failure, Thrown},
    info,
    options::LoadRequest,
};

/// Makes every check that loading makes before it reads weights, and fails as loading would. Reads only the header of each
/// file. The options are those of loading; the report is JSON.
#[wasm_bindgen(unchecked_return_type = "Promise<string>")]
pub fn inspect(
    sources: Vec<JsByteSource>,
    projector: Option<JsByteSource>,
    options: String,
    cancel: &Cancel,
) -> Promise {
    let cancel = cancel.clone();
    future_to_promise(async move {
        let request = LoadRequest::parse(&options)?;
        let report = cancel.unless(report(sources, projector, &request)).await?;
        Ok(report.to_string().into())
    })
}

async fn report(
    sources: Vec<JsByteSource>,
    projector: Option<JsByteSource>,
    request: &LoadRequest,
) -> Result<Value, Failure> {
    let thrown = Thrown::default();
    let model = open(sources, projector, &thrown).await.map_err(|error| thrown.failure(error))?;
    let mut report = info::of_file(&model);
    report["media"] = info::of_media(&Medium::of(&model));
    report["format"] = info::format(&model).into();
    backend::inspect(model, request, &thrown, &mut report).await?;
    Ok(report)
}
