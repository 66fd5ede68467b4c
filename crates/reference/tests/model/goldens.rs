//! The described models against Hugging Face transformers, for every member of the family.
//!
//! The references were computed in f32 on each file's own decoded weights. An engine with f32 activations and
//! an f32 cache must match them closely; llama.cpp itself, which rounds activations, does not.

use std::collections::HashMap;

use crate::common::{Loaded, argmax, testdata};
use rullama_gemma::Outputs;
use rullama_reference::{CacheFormat, Matrix, Step, Watch, run};
use safetensors::SafeTensors;
use serde::Deserialize;

/// Logits may differ by this much with an f32 cache, and choices where the margin is this small.
const LOGITS: f32 = 0.02;
const MARGIN: f32 = 0.08;
/// The same with an f16 cache.
const ROUNDED_LOGITS: f32 = 0.2;
const ROUNDED_MARGIN: f32 = 0.8;

#[derive(Deserialize)]
struct References {
    prompts: Vec<Prompt>,
}

#[derive(Deserialize)]
struct Prompt {
    name: String,
    ids: Vec<u32>,
    top20_ids: Vec<Vec<u32>>,
    top20_logits: Vec<Vec<f32>>,
    hf_greedy: Vec<u32>,
    hf_greedy_margins: Vec<f32>,
}

fn references(model: &str) -> Vec<Prompt> {
    let text = std::fs::read_to_string(testdata(&format!("text/{model}.refs.json"))).unwrap();
    serde_json::from_str::<References>(&text).unwrap().prompts
}

/// Runs every prompt of a model's references and compares logits, choices and continuations. `full` names the file
/// with all logits, which some models have.
fn check(file: &str, references_of: &str, full: Option<&str>) {
    let model = Loaded::open(file);
    let full = full
        .map(|name| tensors(&std::fs::read(testdata(&format!("text/{name}.logits.safetensors"))).unwrap()));
    for prompt in references(references_of) {
        let place = format!("{file}, prompt `{}`", prompt.name);
        let exact = all_logits(&model, &prompt, CacheFormat::F32);
        compare_rows(&place, &prompt, &exact, LOGITS, MARGIN);
        // Experts that change places with others change logits by more than rounding does.
        if !file.contains("moe") {
            let rounded = all_logits(&model, &prompt, CacheFormat::F16);
            compare_rows(&format!("{place}, f16 cache"), &prompt, &rounded, ROUNDED_LOGITS, ROUNDED_MARGIN);
        }
        let expected =
            |what: &str| full.as_ref().map(|full| full[&format!("{}.{what}", prompt.name)].as_slice());
        if let Some(expected) = expected("logits_last4") {
            compare(&format!("{place}, last rows"), &last_rows(&exact, 4), expected);
        }
        continues(&model, &prompt, &place, expected("greedy_logits_first4"));
    }
}

fn all_logits(model: &Loaded, prompt: &Prompt, cache: CacheFormat) -> Matrix {
    let graph = model.graph(Outputs::All);
    let step = Step::tokens(&prompt.ids);
    let logits =
        pollster::block_on(run(&graph, &model.weights, &mut model.caches(cache), &step, &mut ())).unwrap();
    assert_eq!((logits.rows(), logits.width()), (prompt.ids.len(), 2048));
    logits
}

/// The largest logits of each row, and the choice where it is clear.
fn compare_rows(place: &str, prompt: &Prompt, logits: &Matrix, allowed: f32, margin: f32) {
    // Of a long prompt, the references keep the last rows.
    let kept = logits.rows() - prompt.top20_ids.len();
    for (row, (ids, expected)) in (kept..).zip(prompt.top20_ids.iter().zip(&prompt.top20_logits)) {
        for (&id, &expected) in ids.iter().zip(expected) {
            let found = logits.row(row)[id as usize];
            assert!(
                (found - expected).abs() <= allowed,
                "{place}, row {row}, id {id}: {found}, {expected} expected"
            );
        }
        if expected[0] - expected[1] > margin {
            assert_eq!(argmax(logits.row(row)), ids[0], "{place}, row {row}");
        }
    }
}

/// The greedy continuation, token by token through the cache, is the reference's while its margins are wide, and so
/// are the logits of the first steps where the reference has them.
fn continues(model: &Loaded, prompt: &Prompt, place: &str, first_logits: Option<&[f32]>) {
    let graph = model.graph(Outputs::Last);
    let mut caches = model.caches(CacheFormat::F32);
    let mut next = prompt.ids.clone();
    for (index, (&expected, &margin)) in prompt.hf_greedy.iter().zip(&prompt.hf_greedy_margins).enumerate() {
        if margin <= MARGIN {
            assert!(index > 0, "{place}: nothing to compare");
            return;
        }
        let step = Step::tokens(&next);
        let logits = pollster::block_on(run(&graph, &model.weights, &mut caches, &step, &mut ())).unwrap();
        if let Some(expected) = first_logits.and_then(|rows| rows.chunks(logits.width()).nth(index)) {
            compare(&format!("{place}, step {index}"), logits.row(0), expected);
        }
        let found = argmax(logits.row(0));
        assert_eq!(found, expected, "{place}, token {index} of the continuation");
        next = vec![found];
    }
}

fn last_rows(matrix: &Matrix, count: usize) -> Vec<f32> {
    let first = matrix.rows().saturating_sub(count) * matrix.width();
    matrix.values()[first..].to_vec()
}

/// Tensors of f32 by name.
fn tensors(bytes: &[u8]) -> HashMap<String, Vec<f32>> {
    let file = SafeTensors::deserialize(bytes).unwrap();
    let floats = file.iter().filter(|(_, tensor)| tensor.dtype() == safetensors::Dtype::F32);
    floats
        .map(|(name, tensor)| {
            let values =
                tensor.data().chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()));
            (name.to_owned(), values.collect())
        })
        .collect()
}

fn compare(place: &str, found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "{place}");
    let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst <= LOGITS, "{place}: {worst} apart, {LOGITS} allowed");
}

#[test]
fn e2b_in_half_precision() {
    check("micro-e2b-F16", "micro-e2b-F16", Some("micro-e2b-F16"));
}

#[test]
fn e2b_in_eight_bits() {
    check("micro-e2b-Q8_0", "micro-e2b-Q8_0", None);
}

#[test]
fn e2b_in_the_dialect_of_ollama() {
    check("micro-e2b-Q8_0-ollama", "micro-e2b-Q8_0", None);
}

#[test]
fn e2b_in_four_bits() {
    check("micro-e2b-Q4_0", "micro-e2b-Q4_0", None);
}

#[test]
fn e2b_in_mixed_formats() {
    check("tiny-e2b-Q4_K_M", "tiny-e2b-Q4_K_M", Some("tiny-e2b-Q4_K_M"));
}

#[test]
fn dense_with_keys_as_values() {
    check("tiny-dense-Q4_K_M", "tiny-dense-Q4_K_M", Some("tiny-dense-Q4_K_M"));
}

#[test]
fn mixture_of_experts() {
    check("tiny-moe-Q4_K_M", "tiny-moe-Q4_K_M", Some("tiny-moe-Q4_K_M"));
}

/// Collects every named value.
#[derive(Default)]
struct Trace(HashMap<String, Matrix>);

impl Watch for Trace {
    fn value(&mut self, name: &str, value: &Matrix) {
        self.0.insert(name.to_owned(), value.clone());
    }
}

/// Intermediate values of the first 24 tokens of the first prompt.
fn check_values(model: &str) {
    let loaded = Loaded::open(model);
    let golden = tensors(&std::fs::read(testdata(&format!("text/{model}.acts.safetensors"))).unwrap());
    let ids = &references(model)[0].ids[..24];
    let graph = loaded.graph(Outputs::All);
    let mut caches = loaded.caches(CacheFormat::F32);
    let mut trace = Trace::default();
    pollster::block_on(run(&graph, &loaded.weights, &mut caches, &Step::tokens(ids), &mut trace)).unwrap();
    let mut compared = 0;
    for (name, expected) in &golden {
        let Some((layer, part)) = name.split_once(".router") else {
            let found = trace.0.get(name).unwrap_or_else(|| panic!("{model}: no value is named `{name}`"));
            relative(&format!("{model}, `{name}`"), found.values(), expected);
            compared += 1;
            continue;
        };
        // Here the chosen experts and their weights are one value, and the experts' own scales come later.
        if part == "1" {
            let layer = layer.trim_start_matches("layer");
            let routing = &trace.0[&format!("layer{layer}.routing")];
            let scales = loaded.vector(&format!("blk.{layer}.ffn_down_exps.scale"));
            let scaled: Vec<f32> = (0..routing.rows())
                .flat_map(|row| {
                    let (experts, weights) = routing.row(row).split_at(routing.width() / 2);
                    experts.iter().zip(weights).map(|(&expert, weight)| weight * scales[expert as usize])
                })
                .collect();
            relative(&format!("{model}, `{name}`"), &scaled, expected);
            compared += 1;
        }
    }
    assert!(compared > 20, "{model}: only {compared} values were compared");
}

fn relative(place: &str, found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "{place}");
    let difference: f64 = found.iter().zip(expected).map(|(a, b)| f64::from(a - b).powi(2)).sum();
    let size: f64 = expected.iter().map(|b| f64::from(*b).powi(2)).sum();
    let error = (difference / size).sqrt();
    assert!(error <= 1e-4, "{place}: relative error {error:.2e}, 1e-4 allowed");
}

#[test]
fn values_inside_e2b() {
    check_values("tiny-e2b-Q4_K_M");
}

#[test]
fn values_inside_the_mixture_of_experts() {
    check_values("tiny-moe-Q4_K_M");
}
