//! Whole models on the GPU against the CPU reference: every member of the family, on whatever adapter there is.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::rc::Rc;

use rullama_gemma::{Config, Outputs, text};
use rullama_gguf::{MemorySource, Model};
use rullama_gpu::{CacheFormat, Gpu, GpuError, GpuModel, GpuOptions, GpuState, ModelOptions};
use rullama_reference::{Caches, KvFormat, Step, Weights, run};

const MODELS: [&str; 5] =
    ["micro-e2b-F16", "micro-e2b-Q4_0", "tiny-e2b-Q4_K_M", "tiny-dense-Q4_K_M", "tiny-moe-Q4_K_M"];

fn open(name: &str) -> Rc<Model> {
    let path = format!("{}/../../testdata/gguf/{name}.gguf", env!("CARGO_MANIFEST_DIR"));
    let source = MemorySource::named(name, std::fs::read(path).unwrap());
    Rc::new(pollster::block_on(Model::open(Box::new(source))).unwrap())
}

fn gpu(options: &GpuOptions) -> Gpu {
    pollster::block_on(Gpu::open(&options.clone().without_self_test()))
        .expect("these tests need an adapter; a software one such as lavapipe will do")
}

fn load(gpu: &Gpu, model: &Rc<Model>, outputs: Outputs, cache: CacheFormat) -> GpuState {
    let graph = text(model, &Config::read(model).unwrap(), outputs).unwrap();
    let options = ModelOptions::default().context(512).cache(cache);
    let loaded = pollster::block_on(GpuModel::load(gpu.clone(), model, graph, options, &mut |_, _| {}));
    Rc::new(loaded.unwrap()).state().unwrap()
}

fn step(state: &mut GpuState, ids: &[u32]) -> Vec<f32> {
    pollster::block_on(state.step(ids)).unwrap()
}

/// The reference's logits of all rows.
fn reference(model: &Rc<Model>, ids: &[u32], cache: KvFormat) -> Vec<f32> {
    let graph = text(model, &Config::read(model).unwrap(), Outputs::All).unwrap();
    let weights = Weights::new(model.clone(), 1 << 30);
    let mut caches = Caches::new(&graph, cache);
    pollster::block_on(run(&graph, &weights, &mut caches, &Step::tokens(ids), &mut ())).unwrap().into_values()
}

/// Longer than two windows of every model.
fn prompt() -> Vec<u32> {
    std::iter::once(2).chain((0..110).map(|index| 300 + index * 37 % 1500)).collect()
}

fn worst(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn argmax(logits: &[f32]) -> u32 {
    let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    logits.iter().position(|&logit| logit == best).unwrap() as u32
}

/// Reads a prompt in steps of `size` and gives the logits of every row.
fn read(state: &mut GpuState, ids: &[u32], size: usize) -> Vec<f32> {
    ids.chunks(size).flat_map(|ids| step(state, ids)).collect()
}

#[test]
fn logits_are_those_of_the_reference() {
    let gpu = gpu(&GpuOptions::default());
    for name in MODELS {
        let model = open(name);
        let expected = reference(&model, &prompt(), KvFormat::F32);
        for (size, count) in [(1, 20), (7, 60), (64, 111)] {
            let mut state = load(&gpu, &model, Outputs::All, CacheFormat::F32);
            let found = read(&mut state, &prompt()[..count], size);
            // Rounding can make a token change its expert; then its row is another one.
            let rows = found.chunks(2048).zip(expected.chunks(2048)).map(|(a, b)| worst(a, b));
            let far = rows.filter(|&apart| apart > 0.02).count();
            let allowed = if name.contains("moe") { 3 } else { 0 };
            assert!(far <= allowed, "{name}, steps of {size}: {far} rows are apart");
        }
    }
}

#[test]
fn greedy_tokens_are_those_of_the_reference() {
    let gpu = gpu(&GpuOptions::default());
    for name in MODELS {
        let model = open(name);
        let config = Config::read(&model).unwrap();
        let graph = text(&model, &config, Outputs::Last).unwrap();
        let weights = Weights::new(model.clone(), 1 << 30);
        let mut caches = Caches::new(&graph, KvFormat::F32);
        let mut state = load(&gpu, &model, Outputs::Last, CacheFormat::F32);
        let mut next = vec![2, 610, 483, 716];
        for token in 0..64 {
            let found = step(&mut state, &next);
            let expected =
                pollster::block_on(run(&graph, &weights, &mut caches, &Step::tokens(&next), &mut ()));
            let expected = expected.unwrap();
            assert_eq!(argmax(&found), argmax(expected.row(0)), "{name}, token {token}");
            next = vec![argmax(&found)];
        }
    }
}

#[test]
fn the_floor_of_webgpu_is_enough() {
    let gpu = gpu(&GpuOptions::default().floor());
    let model = open("tiny-moe-Q4_K_M");
    let ids = &prompt()[..20];
    let expected = reference(&model, ids, KvFormat::F32);
    let mut state = load(&gpu, &model, Outputs::All, CacheFormat::F32);
    assert!(worst(&read(&mut state, ids, 64), &expected) < 0.02);
    assert!(gpu.profile().largest_binding <= 128 << 20);
}

#[test]
fn a_half_precision_cache_is_the_references() {
    let gpu = gpu(&GpuOptions::default());
    let model = open("tiny-e2b-Q4_K_M");
    let ids = &prompt()[..60];
    let mut state = load(&gpu, &model, Outputs::All, CacheFormat::F16);
    let found = read(&mut state, ids, 32);
    let apart = worst(&found, &reference(&model, ids, KvFormat::F16));
    assert!(apart < 0.05, "{apart} apart");
    assert!(worst(&found, &reference(&model, ids, KvFormat::F32)) > 1e-4, "the cache is rounded");
}

#[test]
fn a_state_can_be_set_back() {
    let gpu = gpu(&GpuOptions::default());
    let model = open("micro-e2b-F16");
    let mut state = load(&gpu, &model, Outputs::Last, CacheFormat::F16);
    step(&mut state, &prompt()[..40]);
    let expected = step(&mut state, &[700, 701]);
    state.truncate(40);
    step(&mut state, &[5, 6, 7]);
    state.truncate(40);
    assert_eq!(step(&mut state, &[700, 701]), expected);
    assert_eq!(state.len(), 42);
}

#[test]
fn bad_steps_are_refused() {
    let gpu = gpu(&GpuOptions::default());
    let mut state = load(&gpu, &open("micro-e2b-F16"), Outputs::Last, CacheFormat::F16);
    let mut refuse = |ids: &[u32]| pollster::block_on(state.step(ids)).unwrap_err();
    assert!(matches!(refuse(&[]), GpuError::StepSize { rows: 0, .. }));
    assert!(matches!(refuse(&[1; 513]), GpuError::StepSize { rows: 513, .. }));
    assert!(matches!(refuse(&[2, 2048]), GpuError::UnknownToken { id: 2048, vocabulary: 2048 }));
    assert!(state.is_empty());
    for _ in 0..8 {
        step(&mut state, &[2; 64]);
    }
    assert!(matches!(pollster::block_on(state.step(&[2])), Err(GpuError::StepSize { cached: 512, .. })));
}
