//! What must not change a result: whether operations are fused, and how a prompt is cut into steps.

use crate::common;
use std::rc::Rc;

use crate::common::{apart, gpu, graph, load, open, read};
use rullama_gemma::Outputs;
use rullama_gpu::{CacheFormat, GpuModel, GpuOptions, ModelOptions};

/// Tokens of the vocabulary of every test model.
const VOCABULARY: usize = 2048;

/// Rows, fused against unfused: how far apart, as a share of the largest logit.
const TOLERANCE: f32 = 2e-3;

/// Longer than two windows of every model.
fn prompt() -> Vec<u32> {
    std::iter::once(2).chain((0..110).map(|index| 300 + index * 37 % 1500)).collect()
}

fn options() -> ModelOptions {
    ModelOptions::default().context(512).cache(CacheFormat::F32)
}

/// All logits of a prompt, read in steps of several sizes, fused and not.
fn check(name: &str) {
    let gpu = gpu(&GpuOptions::default());
    let model = open(name);
    let all = graph(&model, Outputs::All);
    let unfused = load(&gpu, &model, all.clone(), &options().unfused());
    let expected = read(&mut unfused.state().unwrap(), &prompt(), 512);
    let fused = load(&gpu, &model, all, &options());
    let last = load(&gpu, &model, graph(&model, Outputs::Last), &options());
    for size in [1, 2, 7, 32, 512] {
        cut(&format!("{name}, fused"), &fused, size, &expected);
        cut(&format!("{name}, last rows"), &last, size, &expected);
    }
    let found = read(&mut unfused.state().unwrap(), &prompt()[..22], 7);
    compare(&format!("{name}, unfused, steps of 7"), &found, &expected[..22 * VOCABULARY]);
}

/// A prompt that is read in steps of `size`, from its beginning and beyond its windows.
fn cut(place: &str, model: &Rc<GpuModel>, size: usize, expected: &[f32]) {
    let ids = prompt();
    let row = |row: usize| &expected[row * VOCABULARY..][..VOCABULARY];
    // Small steps take long on a GPU that is a program: only some, at both ends.
    let beginning = if size < 32 { 3 * size + 1 } else { ids.len() };
    for (skipped, end) in [(0, beginning), (80, 80 + beginning)] {
        if end > ids.len() && skipped > 0 {
            continue;
        }
        let mut state = model.state().unwrap();
        read(&mut state, &ids[..skipped], 512);
        let found = read(&mut state, &ids[skipped..end], size);
        let every = found.len() == (end - skipped) * VOCABULARY;
        let is_read = |row: &usize| every || (row + 1 - skipped).is_multiple_of(size) || row + 1 == end;
        let expected: Vec<f32> = (skipped..end).filter(is_read).flat_map(row).copied().collect();
        compare(&format!("{place}, steps of {size} after {skipped}"), &found, &expected);
    }
}

fn compare(place: &str, found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "{place}");
    let rows = found.chunks(VOCABULARY).zip(expected.chunks(VOCABULARY));
    let errors: Vec<f32> = rows
        .map(|(found, expected)| {
            let largest = expected.iter().fold(0.0, |largest: f32, logit| largest.max(logit.abs()));
            apart(found, expected) / largest
        })
        .collect();
    let far: Vec<_> = errors.iter().enumerate().filter(|(_, error)| **error > TOLERANCE).collect();
    // Rounding can make a token change its expert; then its row is another one, and a little of those after it.
    let allowed = if place.contains("moe") { 3 } else { 0 };
    assert!(far.len() <= allowed, "{place}: row and relative error {far:?}, {TOLERANCE} allowed");
}

#[test]
fn e2b_in_half_precision() {
    check("micro-e2b-F16");
}

#[test]
fn e2b_in_eight_bits() {
    check("micro-e2b-Q8_0");
}

#[test]
fn e2b_in_the_dialect_of_ollama() {
    check("micro-e2b-Q8_0-ollama");
}

#[test]
fn e2b_in_four_bits() {
    check("micro-e2b-Q4_0");
}

#[test]
fn e2b_in_mixed_formats() {
    check("tiny-e2b-Q4_K_M");
}

#[test]
fn dense_with_keys_as_values() {
    check("tiny-dense-Q4_K_M");
}

#[test]
fn mixture_of_experts() {
    check("tiny-moe-Q4_K_M");
}

/// Rows are brought to their experts once for each routing, and no product of many rows goes row by row.
#[test]
fn experts_share_the_order_of_rows() {
    let gpu = gpu(&GpuOptions::default());
    let model = open("tiny-moe-Q4_K_M");
    let fused = load(&gpu, &model, graph(&model, Outputs::All), &options());
    for rows in [9, 65, 512] {
        let plan = fused.report(rows, 0).unwrap();
        let count = |files: &[&str]| {
            let kernels = plan.dispatches.iter().map(|dispatch| &dispatch.kernel);
            kernels.filter(|kernel| files.iter().all(|file| kernel.contains(file))).count()
        };
        let routings = count(&["route+"]);
        assert!(routings > 0);
        assert_eq!(count(&["group_rows "]), routings, "{rows} rows");
        assert_eq!(count(&["linear_tile", "+grouped", "+gelu_pair"]), routings, "{rows} rows");
        assert_eq!(count(&["linear_tile", "+grouped", "+store"]), routings, "{rows} rows");
        assert_eq!(count(&["+routed"]), 0, "{rows} rows");
    }
}

/// The budget of a token: eight dispatches for each layer with an embedding of its own, and a few for the model.
#[test]
fn a_token_takes_few_dispatches() {
    let gpu = gpu(&GpuOptions::default());
    for (name, layers) in [("tiny-e2b-Q4_K_M", 8), ("micro-e2b-Q4_0", 5)] {
        let model = open(name);
        for outputs in common::OUTPUTS {
            let fused = load(&gpu, &model, graph(&model, outputs), &ModelOptions::default().context(512));
            let plan = fused.report(1, 0).unwrap();
            let dispatches: Vec<_> = plan.dispatches.iter().map(|dispatch| &dispatch.what).collect();
            assert!(dispatches.len() <= 8 * layers + 8, "{name}: {} {dispatches:#?}", dispatches.len());
        }
    }
}
