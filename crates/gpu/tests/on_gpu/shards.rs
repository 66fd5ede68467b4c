//! Weights that are too large for one binding compute what whole ones do.

use std::rc::Rc;

use crate::common::{apart, gpu, graph, load, open, read};
use rullama_gemma::Outputs;
use rullama_gpu::{CacheFormat, GpuModel, GpuOptions, ModelOptions};

/// How far apart logits may be.
const TOLERANCE: f32 = 2e-3;

/// A model whose weights come in shards of at most so many bytes.
fn sharded(name: &str, bytes: Option<u64>, fused: bool) -> Rc<GpuModel> {
    let options = bytes.map_or(GpuOptions::default(), |bytes| GpuOptions::default().largest_shard(bytes));
    let model = open(name);
    let cache = ModelOptions::default().context(128).cache(CacheFormat::F32);
    let options_of_model = if fused { cache } else { cache.unfused() };
    load(&gpu(&options), &model, graph(&model, Outputs::All), &options_of_model)
}

/// Logits of one row, of a few, and of many.
fn logits(model: &Rc<GpuModel>) -> Vec<f32> {
    let ids: Vec<u32> = std::iter::once(2).chain((0..27).map(|index| 300 + index * 37 % 1500)).collect();
    let mut state = model.state().unwrap();
    let mut logits = read(&mut state, &ids[..2], 1);
    logits.extend(read(&mut state, &ids[2..7], 5));
    logits.extend(read(&mut state, &ids[7..], 512));
    logits
}

fn dispatches(model: &GpuModel) -> Vec<String> {
    let plan = model.report(1, 0).unwrap();
    plan.dispatches.into_iter().map(|dispatch| dispatch.kernel).collect()
}

fn check(name: &str, sizes: &[u64]) {
    let whole = sharded(name, None, true);
    let expected = logits(&whole);
    for &bytes in sizes {
        let split = sharded(name, Some(bytes), true);
        let (many, few) = (dispatches(&split).len(), dispatches(&whole).len());
        assert!(many > few, "{name}, shards of {bytes} bytes: {many} dispatches; without, {few}");
        let apart = apart(&logits(&split), &expected);
        assert!(apart <= TOLERANCE, "{name}, shards of {bytes} bytes: {apart} apart");
    }
}

#[test]
fn tables_and_products() {
    check("micro-e2b-Q8_0", &[64 << 10, 10_000]);
}

#[test]
fn mixed_formats() {
    check("tiny-e2b-Q4_K_M", &[64 << 10]);
}

#[test]
fn keys_as_values() {
    check("tiny-dense-Q4_K_M", &[64 << 10]);
}

/// The rows of an expert stay together where a binding holds them all, and gates are computed with their ups; where it
/// does not, each on its own.
#[test]
fn experts() {
    let name = "tiny-moe-Q4_K_M";
    check(name, &[64 << 10, 16 << 10]);
    let pairs = |bytes| {
        let kernels = dispatches(&sharded(name, bytes, true));
        kernels.iter().filter(|kernel| kernel.contains("gelu_pair") && kernel.contains("routed")).count()
    };
    let [whole, split, torn] = [None, Some(64 << 10), Some(16 << 10)].map(pairs);
    assert!(whole > 0 && split > whole && torn == 0, "{whole}, {split}, {torn}");
}

#[test]
fn operations_that_are_not_fused() {
    let expected = logits(&sharded("tiny-moe-Q4_K_M", None, true));
    let apart = apart(&logits(&sharded("tiny-moe-Q4_K_M", Some(20_000), false)), &expected);
    assert!(apart <= TOLERANCE, "{apart} apart");
}
