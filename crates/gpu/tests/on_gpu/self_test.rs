//! The self-test passes where kernels are right, and where they are not, safer ones are taken.

use crate::common;
use std::rc::Rc;

use crate::common::{apart, gpu, graph, opened, step};
use rullama_gemma::Outputs;
use rullama_gpu::{Fallback, Gpu, GpuModel, GpuOptions, ModelOptions, self_test};

fn load(gpu: &Gpu) -> Rc<GpuModel> {
    let model = common::open("micro-e2b-F16");
    common::load(gpu, &model, graph(&model, Outputs::Last), &ModelOptions::default().context(64))
}

fn logits(model: &Rc<GpuModel>) -> Vec<f32> {
    let mut state = model.state().unwrap();
    step(&mut state, &[2, 610, 483, 716, 5, 6, 7, 8, 9, 10]);
    step(&mut state, &[700])
}

/// What kernels without subgroups compute, on a GPU that nobody distrusts.
fn expected() -> Vec<f32> {
    logits(&load(&gpu(&GpuOptions::default().floor())))
}

#[test]
fn kernels_answer_known_cases() {
    for options in [GpuOptions::default(), GpuOptions::default().floor()] {
        let gpu = opened(&options);
        let results = pollster::block_on(self_test(&gpu)).unwrap();
        for result in &results {
            assert!(result.passed, "{result}");
        }
        for (case, sizes) in [
            ("products", &["many rows", "few rows", "one row"][..]),
            ("attention", &["many rows", "one row"]),
            ("sliding attention", &["many rows", "one row"]),
            ("experts", &["many rows", "one row"]),
            ("per-layer embeddings", &["many rows", "one row"]),
            ("greedy sampling", &[""]),
            ("random sampling", &[""]),
        ] {
            for size in sizes {
                let is = |name: &str| name.starts_with(case) && name.ends_with(size);
                assert!(results.iter().any(|result| is(&result.name)), "{case}, {size}");
            }
        }
        assert!(load(&gpu).fallbacks().is_empty());
    }
}

/// Kernels that take subgroups to be larger than they are.
#[test]
fn subgroups_that_are_not_what_they_seem_are_not_used() {
    let real = gpu(&GpuOptions::default()).profile().subgroups;
    let [_, lanes] = real.expect("this test needs an adapter with subgroups, as lavapipe is");
    let mut options = GpuOptions::default();
    options.pretended_subgroup = Some(2 * lanes);
    let gpu = opened(&options);
    let results = pollster::block_on(self_test(&gpu)).unwrap();
    let passed: Vec<_> = results.iter().filter(|result| result.passed).map(|result| &result.name).collect();
    assert!(passed.len() < results.len(), "{results:?}");

    let model = load(&gpu);
    let [Fallback::NoSubgroups { failed }] = model.fallbacks() else { panic!("{:?}", model.fallbacks()) };
    assert!(failed.iter().any(|result| result.name == "products, one row"), "{failed:?}");
    assert!(failed.iter().any(|result| result.name == "products, many rows"), "{failed:?}");
    let text = model.fallbacks()[0].to_string();
    assert!(text.starts_with("subgroups are not used: products, many rows: normalised error"), "{text}");
    assert!(apart(&logits(&model), &expected()) < 1e-3);
}

#[test]
fn fused_kernels_that_answer_wrongly_are_not_used() {
    let mut options = GpuOptions::default().floor();
    options.distrust_fused = true;
    let gpu = opened(&options);
    // What is planned is what is then loaded.
    let file = common::open("micro-e2b-F16");
    let graph = graph(&file, Outputs::Last);
    let asked = ModelOptions::default().context(64);
    let plan = pollster::block_on(GpuModel::plan(&gpu, &file, &graph, &asked, 1, 0)).unwrap();
    let fallbacks = gpu.fallbacks();
    assert!(matches!(fallbacks.last(), Some(Fallback::Unfused { .. })), "{fallbacks:?}");
    let model = load(&gpu);
    assert_eq!(model.fallbacks(), fallbacks);
    assert_eq!(model.report(1, 0).unwrap(), plan);
    let kernels: Vec<String> = plan.dispatches.into_iter().map(|dispatch| dispatch.kernel).collect();
    assert!(!kernels.iter().any(|kernel| kernel.starts_with("linear_row")), "{kernels:?}");
    assert!(apart(&logits(&model), &expected()) < 1e-2);
}
