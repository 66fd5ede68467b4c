//! Every member of the family against Hugging Face's logits and continuations, and against the reference.
//!
//! Activations of eight bits change logits by more than the order of sums does, so tolerances depend on the format. Choices
//! are compared where the golden margin is wider than that.

use rullama_cpu::{Executor, Output};
use rullama_gemma::Outputs;
use rullama_graph::CacheFormat;
use rullama_reference as reference;
use serde::Deserialize;

use crate::common::{Loaded, MODELS, argmax, margin, testdata};

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
    let model = model.strip_suffix("-ollama").unwrap_or(model);
    let text = std::fs::read_to_string(testdata(&format!("text/{model}.refs.json"))).unwrap();
    serde_json::from_str::<References>(&text).unwrap().prompts
}

/// By how much logits may differ from the golden ones.
fn allowed(model: &str) -> f32 {
    // Floats are multiplied as floats.
    if model == "micro-e2b-F16" { 0.02 } else { 1.0 }
}

/// How many of all logits may differ by more: a row that rounding sends to other experts has other logits.
fn exceptions(model: &str) -> f32 {
    if model.contains("moe") { 0.02 } else { 0.0 }
}

fn check(name: &str, instructions: &str) {
    let model = Loaded::open(name).with_instructions(instructions);
    let (mut differences, mut continued, allowed) = (Vec::new(), 0, allowed(name));
    for prompt in references(name) {
        let place = format!("{name}, {instructions}, prompt `{}`", prompt.name);
        let graph = model.graph(Outputs::All);
        let logits = model.step(&graph, &mut model.caches(CacheFormat::F32), &prompt.ids);
        compare_rows(&place, &prompt, &logits, allowed, exceptions(name) > 0.0, &mut differences);
        continued += continues(&model, &prompt, &place, allowed);
    }
    assert!(continued > 10, "{name}: the references are sure of {continued} tokens");
    differences.sort_by(f32::total_cmp);
    let usual = differences[((1.0 - exceptions(name)) * (differences.len() - 1) as f32) as usize];
    assert!(usual <= allowed, "{name}, {instructions}: {usual} apart, {allowed} allowed");
}

/// Collects the differences of the largest logits of each row, and compares the choice where it is clear.
fn compare_rows(
    place: &str,
    prompt: &Prompt,
    logits: &Output,
    allowed: f32,
    other_experts: bool,
    differences: &mut Vec<f32>,
) {
    let rows = logits.values.len() / logits.width;
    assert_eq!((rows, logits.width), (prompt.ids.len(), 2048));
    // Of a long prompt, the references keep the last rows.
    let kept = rows - prompt.top20_ids.len();
    for (row, (ids, expected)) in (kept..).zip(prompt.top20_ids.iter().zip(&prompt.top20_logits)) {
        let found = ids.iter().map(|&id| logits.row(row)[id as usize]);
        differences.extend(found.zip(expected).map(|(found, expected)| (found - expected).abs()));
        if expected[0] - expected[1] > 2.0 * allowed && !other_experts {
            assert_eq!(argmax(logits.row(row)), ids[0], "{place}, row {row}");
        }
    }
}

/// The greedy continuation is the golden one while its margins are wide. Gives the number of tokens compared.
fn continues(model: &Loaded, prompt: &Prompt, place: &str, allowed: f32) -> usize {
    let graph = model.graph(Outputs::Last);
    let mut caches = model.caches(CacheFormat::F32);
    let mut next = prompt.ids.clone();
    for (index, (&expected, &margin)) in prompt.hf_greedy.iter().zip(&prompt.hf_greedy_margins).enumerate() {
        if margin <= 2.0 * allowed {
            return index;
        }
        let logits = model.step(&graph, &mut caches, &next);
        let found = argmax(logits.row(0));
        assert_eq!(found, expected, "{place}, token {index} of the continuation");
        next = vec![found];
    }
    prompt.hf_greedy.len()
}

#[test]
fn every_model_gives_the_golden_logits() {
    for name in MODELS {
        check(name, Executor::instructions()[0]);
    }
}

#[test]
fn portable_code_gives_the_golden_logits() {
    for name in MODELS {
        check(name, "portable");
    }
}

/// A machine without some or all of the instructions that make this fast gives the same tokens: sums differ in their order
/// only.
#[test]
fn every_set_of_instructions_gives_the_same_tokens() {
    for name in MODELS {
        let prompt = references(name).into_iter().find(|prompt| prompt.name == "chat").unwrap();
        let tokens = Executor::instructions().into_iter().map(|instructions| {
            let model = Loaded::open(name).with_instructions(instructions);
            let (graph, mut caches) = (model.graph(Outputs::Last), model.caches(CacheFormat::F16));
            let mut next = prompt.ids.clone();
            let mut tokens = Vec::new();
            for _ in 0..24 {
                next = vec![argmax(model.step(&graph, &mut caches, &next).row(0))];
                tokens.extend_from_slice(&next);
            }
            (instructions, tokens)
        });
        let tokens: Vec<(&str, Vec<u32>)> = tokens.collect();
        for (instructions, found) in &tokens[1..] {
            assert_eq!(*found, tokens[0].1, "{name}, {instructions} and {}", tokens[0].0);
        }
    }
}

/// 32 greedy tokens after a prompt longer than a window are those of the reference where the reference is sure of them,
/// whatever the format of the caches.
#[test]
fn greedy_tokens_are_the_references() {
    /// By how much the reference must prefer its token.
    const SURE: f32 = 2.0;
    for name in MODELS {
        let model = Loaded::open(name);
        let graph = model.graph(Outputs::Last);
        let weights = reference::Weights::new(model.model.clone(), 1 << 30);
        let prompt = references(name).into_iter().find(|prompt| prompt.name == "long").unwrap();
        let mut compared = 0;
        for format in CacheFormat::ALL {
            let mut caches = model.caches(format);
            let mut expected_caches = reference::Caches::new(&graph, format);
            let mut next = prompt.ids.clone();
            for token in 0..32 {
                let found = model.step(&graph, &mut caches, &next);
                let (step, watch) = (reference::Step::tokens(&next), &mut ());
                let expected = reference::run(&graph, &weights, &mut expected_caches, &step, watch);
                let expected = pollster::block_on(expected).unwrap();
                let best = argmax(expected.row(0));
                if margin(expected.row(0)) > SURE {
                    assert_eq!(argmax(found.row(0)), best, "{name}, {format:?}, token {token}");
                    compared += 1;
                }
                next = vec![best];
            }
        }
        assert!(compared > 30, "{name}: the reference is sure of {compared} of 96 tokens");
    }
}
