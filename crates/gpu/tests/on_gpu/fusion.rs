//! What must not change a result: whether operations are fused, and how a prompt is cut into steps.
//!
//! The dialect of Ollama has other names for the same graph; `models` compares it with Hugging Face.

use crate::common;
use std::rc::Rc;

use crate::common::{Reference, apart, gpu, graph, load, open, step};
use rullama_gemma::Outputs;
use rullama_gpu::{CacheFormat, GpuModel, GpuOptions, ModelOptions};

/// Tokens of the vocabulary of every test model.
const VOCABULARY: usize = 2048;

/// Rows on the GPU against those of the CPU: how far apart, as a share of the largest logit.
const TOLERANCE: f32 = 2e-3;

/// Longer than two windows of every model.
fn prompt() -> Vec<u32> {
    std::iter::once(2).chain((0..110).map(|index| 300 + index * 37 % 1500)).collect()
}

fn options() -> ModelOptions {
    ModelOptions::default().context(512).cache(CacheFormat::F32)
}

/// Rows of each step of a prompt. Each kind of plan, which are for one row, for a few, for up to 64 and for more, meets the
/// beginning of the prompt and rows beyond the windows.
fn steps(few: usize) -> [usize; 9] {
    let first = [1, few, 1, 32];
    let last = [1, few, 9, 1];
    let rest = prompt().len() - first.iter().chain(&last).sum::<usize>();
    [first[0], first[1], first[2], first[3], rest, last[0], last[1], last[2], last[3]]
}

/// All logits of a prompt, as the CPU computes them at once, and read in many steps. `few` is the size of short steps: each
/// has kernels of its own, so every model takes another one.
fn check(name: &str, few: usize) {
    let gpu = gpu(&GpuOptions::default());
    let model = open(name);
    let all = graph(&model, Outputs::All);
    let expected = Reference::new(&model, all.clone(), CacheFormat::F32).step(&prompt());
    let fused = load(&gpu, &model, all.clone(), &options());
    let last = load(&gpu, &model, graph(&model, Outputs::Last), &options());
    cut(&format!("{name}, fused"), &fused, &steps(few), &expected);
    cut(&format!("{name}, last rows"), &last, &steps(few), &expected);
    // Kernels that are not fused take as long to compile as others. The models here have every operation; that each of them
    // is the same with fusion and without, `ops` compares in every format.
    if ["micro-e2b-Q8_0", "tiny-moe-Q4_K_M"].contains(&name) {
        let unfused = load(&gpu, &model, all, &options().unfused());
        cut(&format!("{name}, unfused"), &unfused, &steps(few), &expected);
    }
}

/// A prompt that is read in these steps.
fn cut(place: &str, model: &Rc<GpuModel>, steps: &[usize], expected: &[f32]) {
    let ids = prompt();
    let mut state = model.state().unwrap();
    let (mut found, mut wanted, mut end) = (Vec::new(), Vec::new(), 0);
    for &rows in steps {
        let logits = step(&mut state, &ids[end..end + rows]);
        end += rows;
        // All rows of the step, or its last.
        let first = end - logits.len() / VOCABULARY;
        wanted.extend(&expected[first * VOCABULARY..end * VOCABULARY]);
        found.extend(logits);
    }
    compare(&format!("{place}, steps of {steps:?} rows"), &found, &wanted);
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
    check("micro-e2b-F16", 2);
}

#[test]
fn e2b_in_eight_bits() {
    check("micro-e2b-Q8_0", 3);
}

#[test]
fn e2b_in_four_bits() {
    check("micro-e2b-Q4_0", 4);
}

#[test]
fn e2b_in_mixed_formats() {
    check("tiny-e2b-Q4_K_M", 5);
}

#[test]
fn dense_with_keys_as_values() {
    check("tiny-dense-Q4_K_M", 7);
}

#[test]
fn mixture_of_experts() {
    check("tiny-moe-Q4_K_M", 8);
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
