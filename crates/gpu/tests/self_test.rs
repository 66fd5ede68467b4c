//! The self-test passes where kernels are right, and where they are not, safer ones are taken.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::rc::Rc;

use rullama_gemma::{Config, Outputs, text};
use rullama_gguf::{MemorySource, Model};
use rullama_gpu::{Fallback, Gpu, GpuModel, GpuOptions, ModelOptions, self_test};

fn open(options: &GpuOptions) -> Gpu {
    pollster::block_on(Gpu::open(options))
        .expect("these tests need an adapter; a software one such as lavapipe will do")
}

fn load(gpu: &Gpu) -> Rc<GpuModel> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/micro-e2b-F16.gguf");
    let source = MemorySource::new(std::fs::read(path).unwrap());
    let model = Rc::new(pollster::block_on(Model::open(Box::new(source))).unwrap());
    let graph = text(&model, &Config::read(&model).unwrap(), Outputs::Last).unwrap();
    let options = ModelOptions::default().context(64);
    Rc::new(pollster::block_on(GpuModel::load(gpu.clone(), &model, graph, options, &mut |_, _| {})).unwrap())
}

fn logits(model: &Rc<GpuModel>) -> Vec<f32> {
    let mut state = model.state().unwrap();
    pollster::block_on(state.step(&[2, 610, 483, 716, 5, 6, 7, 8, 9, 10])).unwrap();
    pollster::block_on(state.step(&[700])).unwrap()
}

fn worst(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// What kernels without subgroups compute, on a GPU that nobody distrusts.
fn expected() -> Vec<f32> {
    logits(&load(&open(&GpuOptions::default().floor().without_self_test())))
}

#[test]
fn kernels_answer_known_cases() {
    for options in [GpuOptions::default(), GpuOptions::default().floor()] {
        let gpu = open(&options);
        let results = pollster::block_on(self_test(&gpu)).unwrap();
        for result in &results {
            assert!(result.passed, "{result}");
        }
        assert_eq!(results.len(), 8);
        assert!(load(&gpu).fallbacks().is_empty());
    }
}

/// Kernels that take subgroups to be larger than they are.
#[test]
fn subgroups_that_are_not_what_they_seem_are_not_used() {
    let real = open(&GpuOptions::default()).profile().subgroups;
    let [_, lanes] = real.expect("this test needs an adapter with subgroups, as lavapipe is");
    let mut options = GpuOptions::default();
    options.pretended_subgroup = Some(2 * lanes);
    let gpu = open(&options);
    let results = pollster::block_on(self_test(&gpu)).unwrap();
    let passed: Vec<_> = results.iter().filter(|result| result.passed).map(|result| &result.name).collect();
    assert!(passed.len() < results.len(), "{results:?}");

    let model = load(&gpu);
    let [Fallback::NoSubgroups { failed }] = model.fallbacks() else { panic!("{:?}", model.fallbacks()) };
    assert!(failed.iter().any(|result| result.name == "products, one row"), "{failed:?}");
    assert!(failed.iter().any(|result| result.name == "products, many rows"), "{failed:?}");
    let text = model.fallbacks()[0].to_string();
    assert!(text.starts_with("subgroups are not used: products, many rows: normalised error"), "{text}");
    assert!(worst(&logits(&model), &expected()) < 1e-3);
}

#[test]
fn fused_kernels_that_answer_wrongly_are_not_used() {
    let mut options = GpuOptions::default();
    options.distrust_fused = true;
    let model = load(&open(&options));
    let fallbacks = model.fallbacks();
    assert!(matches!(fallbacks.last(), Some(Fallback::Unfused { .. })), "{fallbacks:?}");
    let kernels: Vec<String> =
        model.report(1, 0).unwrap().dispatches.into_iter().map(|dispatch| dispatch.kernel).collect();
    assert!(!kernels.iter().any(|kernel| kernel.starts_with("linear_row")), "{kernels:?}");
    assert!(worst(&logits(&model), &expected()) < 1e-2);
}
