//! The GPU without a model: its limits, self-test and bandwidth. Also the kernels that a model runs on it.

use std::collections::BTreeMap;

use js_sys::Promise;
use rullama_gpu::{Gpu, GpuModel, measure_bandwidth, self_test};
use serde_json::{Value, json};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::{
    Cancel,
    backend::Opened,
    error::{Failure, failure},
    host::milliseconds,
    info,
    options::LoadRequest,
};

/// The steps whose kernels are reported: decoding one token, and reading a prompt.
const STEPS: [(&str, u32); 2] = [("decode", 1), ("prompt", 512)];

/// Opens the GPU, tests each family of kernels and measures the memory bandwidth. The options are those of loading that
/// concern the GPU; the report is JSON.
#[wasm_bindgen(unchecked_return_type = "Promise<string>")]
pub fn examine(options: String, cancel: &Cancel) -> Promise {
    let cancel = cancel.clone();
    future_to_promise(async move {
        let request = LoadRequest::parse(&options)?;
        let report = cancel.unless(report(&request)).await?;
        Ok(report.to_string().into())
    })
}

async fn report(request: &LoadRequest) -> Result<Value, Failure> {
    let gpu = Gpu::open(&request.gpu()).await.map_err(failure)?;
    let _opened = Opened::new(gpu.clone());
    // First, because kernels that fail the self-test are not used afterwards.
    let tests = self_test(&gpu).await.map_err(failure)?;
    let seconds = || milliseconds() / 1000.0;
    let bandwidth = measure_bandwidth(&gpu, &seconds).await.map_err(failure)?;
    let test = |test: &rullama_gpu::SelfTestResult| json!({ "name": test.name, "passed": test.passed, "detail": test.detail });
    Ok(json!({
        "gpu": info::of_gpu(gpu.profile()),
        "selfTests": tests.iter().map(test).collect::<Vec<_>>(),
        "fallbacks": gpu.fallbacks().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "bandwidth": bandwidth,
    }))
}

/// The kernels of a model's steps, and how often a step dispatches each.
pub(crate) fn kernels(model: &GpuModel) -> Result<Value, Failure> {
    let mut chosen = Vec::new();
    for (step, rows) in STEPS {
        let rows = rows.min(model.rows_at_once() as u32);
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for dispatch in model.report(rows, 0).map_err(failure)?.dispatches {
            *counts.entry(dispatch.kernel).or_default() += 1;
        }
        let describe =
            |(kernel, count)| json!({ "step": step, "rows": rows, "kernel": kernel, "count": count });
        chosen.extend(counts.into_iter().map(describe));
    }
    Ok(chosen.into())
}
