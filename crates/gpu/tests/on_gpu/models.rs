//! Whole models on the GPU: every member of the family, on whatever adapter there is, against Hugging Face and the CPU
//! reference.

use crate::common;
use std::{collections::HashMap, rc::Rc};

use crate::common::{Reference, apart, argmax, generated, gpu, graph, load, open, read, step, testdata};
use rullama_gemma::Outputs;
use rullama_gguf::Model;
use rullama_gpu::{CacheFormat, Gpu, GpuError, GpuModel, GpuOptions, ModelOptions, Sampling};
use rullama_synth::{Mix, SynthOptions};
use safetensors::SafeTensors;
use serde_json::Value;

/// Logits may differ from Hugging Face's by this much with an f32 cache, and choices where the margin is this small:
/// what the CPU is held to.
const LOGITS: f32 = 0.02;
const MARGIN: f32 = 0.08;
/// The same with an f16 cache.
const ROUNDED_LOGITS: f32 = 0.2;
const ROUNDED_MARGIN: f32 = 0.8;

const VOCABULARY: usize = 2048;

fn options(cache: CacheFormat) -> ModelOptions {
    ModelOptions::default().context(512).cache(cache)
}

fn loaded(gpu: &Gpu, model: &Rc<Model>, outputs: Outputs, cache: CacheFormat) -> Rc<GpuModel> {
    load(gpu, model, graph(model, outputs), &options(cache))
}

/// Longer than two windows of every model.
fn prompt() -> Vec<u32> {
    std::iter::once(2).chain((0..110).map(|index| 300 + index * 37 % 1500)).collect()
}

/// What Hugging Face says about a prompt.
struct Golden {
    name: String,
    ids: Vec<u32>,
    /// Of the last rows, the largest logits by token.
    largest: Vec<Vec<(u32, f32)>>,
    greedy: Vec<(u32, f32)>,
}

fn goldens(model: &str) -> Vec<Golden> {
    let text = std::fs::read_to_string(testdata(&format!("text/{model}.refs.json"))).unwrap();
    let references: Value = serde_json::from_str(&text).unwrap();
    let ids = |value: &Value| -> Vec<u32> {
        value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
    };
    let floats = |value: &Value| -> Vec<f32> {
        value.as_array().unwrap().iter().map(|float| float.as_f64().unwrap() as f32).collect()
    };
    let prompts = references["prompts"].as_array().unwrap().iter();
    prompts
        .map(|prompt| {
            let rows = |key: &str| prompt[key].as_array().unwrap().iter();
            let largest = rows("top20_ids").zip(rows("top20_logits"));
            Golden {
                name: prompt["name"].as_str().unwrap().to_owned(),
                ids: ids(&prompt["ids"]),
                largest: largest
                    .map(|(row, logits)| ids(row).into_iter().zip(floats(logits)).collect())
                    .collect(),
                greedy: ids(&prompt["hf_greedy"])
                    .into_iter()
                    .zip(floats(&prompt["hf_greedy_margins"]))
                    .collect(),
            }
        })
        .collect()
}

/// Models of whose references only the largest logits are kept: others have a file with all logits of a few rows.
const WITHOUT_FULL_LOGITS: [&str; 2] = ["micro-e2b-Q8_0", "micro-e2b-Q4_0"];

/// All logits of a few rows.
fn full_logits(model: &str) -> HashMap<String, Vec<f32>> {
    if WITHOUT_FULL_LOGITS.contains(&model) {
        return HashMap::new();
    }
    let bytes = std::fs::read(testdata(&format!("text/{model}.logits.safetensors"))).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let floats = file.iter().filter(|(_, tensor)| tensor.dtype() == safetensors::Dtype::F32);
    let values = |data: &[u8]| data.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    floats.map(|(name, tensor)| (name.to_owned(), values(tensor.data()))).collect()
}

/// Logits, choices and continuations of every prompt are Hugging Face's, and 64 greedy tokens are the CPU's.
fn check(file: &str, references: &str) {
    let gpu = gpu(&GpuOptions::default());
    let model = open(file);
    let full = full_logits(references);
    let exact = loaded(&gpu, &model, Outputs::All, CacheFormat::F32);
    // A rounded cache changes the kernels of attention alone, which take long to compile: for the two kinds of layers, those
    // with values of their own and those without. `caches_are_rounded_as_the_references` has another model.
    let is_rounded = ["micro-e2b-Q8_0", "tiny-dense-Q4_K_M"].contains(&file);
    let rounded = is_rounded.then(|| loaded(&gpu, &model, Outputs::All, CacheFormat::F16));
    let last = loaded(&gpu, &model, Outputs::Last, CacheFormat::F32);
    for golden in goldens(references) {
        let place = format!("{file}, prompt `{}`", golden.name);
        let found = read(&mut exact.state().unwrap(), &golden.ids, 512);
        compare_rows(&place, &golden, &found, LOGITS, MARGIN);
        if let Some(expected) = full.get(&format!("{}.logits_last4", golden.name)) {
            let apart = apart(&found[found.len() - expected.len()..], expected);
            assert!(apart <= LOGITS, "{place}, last rows: {apart} apart, {LOGITS} allowed");
        }
        if let Some(rounded) = &rounded {
            let found = read(&mut rounded.state().unwrap(), &golden.ids, 512);
            compare_rows(&format!("{place}, f16 cache"), &golden, &found, ROUNDED_LOGITS, ROUNDED_MARGIN);
        }
        // After a prompt that is one short step, and after one that is longer than every window.
        if ["short", "long"].contains(&golden.name.as_str()) {
            let first = full.get(&format!("{}.greedy_logits_first4", golden.name));
            continues(&place, &golden, &last, first.map_or(&[], |logits| logits));
        }
    }
    greedy_tokens(file, &model, &last);
}

/// The largest logits of each row, and the choice where it is clear.
fn compare_rows(place: &str, golden: &Golden, logits: &[f32], allowed: f32, margin: f32) {
    // Of a long prompt, the references keep the last rows.
    let kept = golden.ids.len() - golden.largest.len();
    for (row, expected) in (kept..).zip(&golden.largest) {
        let logits = &logits[row * VOCABULARY..][..VOCABULARY];
        for &(id, expected) in expected {
            let found = logits[id as usize];
            let near = (found - expected).abs() <= allowed;
            assert!(near, "{place}, row {row}, id {id}: {found}, {expected} expected");
        }
        let [(best, logit), (_, next), ..] = expected[..] else { unreachable!("of 20") };
        if logit - next > margin {
            assert_eq!(argmax(logits), best, "{place}, row {row}");
        }
    }
}

/// The greedy continuation is the reference's while its margins are wide: step by step, with the logits of the first
/// steps where the reference has them, and chosen on the GPU.
fn continues(place: &str, golden: &Golden, model: &Rc<GpuModel>, first: &[f32]) {
    let clear = golden.greedy.iter().take_while(|(_, margin)| *margin > MARGIN);
    let expected: Vec<u32> = clear.map(|&(token, _)| token).collect();
    assert!(!expected.is_empty(), "{place}: nothing to compare");
    let mut state = model.state().unwrap();
    let mut next = golden.ids.clone();
    for (index, (&token, expected)) in expected.iter().zip(first.chunks(VOCABULARY)).enumerate() {
        let logits = step(&mut state, &next);
        let apart = apart(&logits, expected);
        assert!(apart <= LOGITS, "{place}, step {index}: {apart} apart, {LOGITS} allowed");
        assert_eq!(argmax(&logits), token, "{place}, token {index} of the continuation");
        next = vec![token];
    }
    let found = generated(&mut model.state().unwrap(), &golden.ids, expected.len());
    assert_eq!(found, expected, "{place}: the continuation");
}

/// 64 tokens after a text that the model knows, chosen on the GPU. What single steps compute, `continues` and `fusion` see.
fn greedy_tokens(place: &str, model: &Rc<Model>, loaded: &Rc<GpuModel>) {
    const COUNT: usize = 64;
    let ids = [2, 610, 483, 716];
    let mut reference = Reference::new(model, graph(model, Outputs::Last), CacheFormat::F32);
    let mut next = ids.to_vec();
    let mut expected: Vec<u32> = Vec::new();
    while expected.len() < COUNT {
        next = vec![argmax(&reference.step(&next))];
        expected.extend(&next);
    }
    assert_eq!(generated(&mut loaded.state().unwrap(), &ids, COUNT), expected, "{place}");
}

#[test]
fn e2b_in_half_precision() {
    check("micro-e2b-F16", "micro-e2b-F16");
}

#[test]
fn e2b_in_eight_bits() {
    check("micro-e2b-Q8_0", "micro-e2b-Q8_0");
}

#[test]
fn e2b_in_the_dialect_of_ollama() {
    check("micro-e2b-Q8_0-ollama", "micro-e2b-Q8_0");
}

#[test]
fn e2b_in_four_bits() {
    check("micro-e2b-Q4_0", "micro-e2b-Q4_0");
}

#[test]
fn e2b_in_mixed_formats() {
    check("tiny-e2b-Q4_K_M", "tiny-e2b-Q4_K_M");
}

#[test]
fn dense_with_keys_as_values() {
    check("tiny-dense-Q4_K_M", "tiny-dense-Q4_K_M");
}

#[test]
fn mixture_of_experts() {
    check("tiny-moe-Q4_K_M", "tiny-moe-Q4_K_M");
}

/// The structure of every released size, with random weights: logits, and tokens of which each is the reference's where
/// that is in no doubt.
#[test]
fn every_size() {
    const TOKENS: usize = 16;
    let gpu = gpu(&GpuOptions::default());
    for name in ["tiny-e2b", "tiny-e4b", "tiny-12b", "tiny-26b-a4b", "tiny-31b"] {
        let options = SynthOptions { mix: Mix::Q4_K_M, vocabulary: Some(512), ..SynthOptions::default() };
        let model = common::from_bytes(name, rullama_synth::tiny(name, &options).unwrap());
        let ids: Vec<u32> = (0..80).map(|index| 5 + index * 37 % 500).collect();
        let mut reference = Reference::new(&model, graph(&model, Outputs::All), CacheFormat::F32);
        let mut state = loaded(&gpu, &model, Outputs::All, CacheFormat::F32).state().unwrap();
        let mut next = ids.clone();
        let mut found = read(&mut state, &next[..9], 9);
        found.extend(read(&mut state, &next[9..], 512));
        let mut clear = 0;
        for token in 0..=TOKENS {
            let expected = reference.step(&next);
            let apart = apart(&found, &expected);
            assert!(apart <= LOGITS, "{name}, token {token}: {apart} apart");
            let last = &expected[expected.len() - 512..];
            let best = argmax(last);
            let others = last.iter().enumerate().filter(|(id, _)| *id != best as usize);
            let second = others.map(|(_, logit)| *logit).fold(f32::NEG_INFINITY, f32::max);
            if last[best as usize] - second > 2.0 * apart {
                assert_eq!(argmax(&found[found.len() - 512..]), best, "{name}, token {token}");
                clear += 1;
            }
            next = vec![best];
            found = step(&mut state, &next);
        }
        assert!(2 * clear > TOKENS, "{name}: only {clear} tokens were clear");
    }
}

/// The root of the mean squared difference.
fn distance(a: &[f32], b: &[f32]) -> f64 {
    let squares: f64 = a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum();
    (squares / a.len() as f64).sqrt()
}

/// A rounded cache is rounded as the reference's, in steps of several rows and of one.
#[test]
fn caches_are_rounded_as_the_references() {
    let gpu = gpu(&GpuOptions::default());
    let ids = &prompt()[..60];
    // It has layers of both kinds, and some that read the caches of others.
    let model = open("tiny-e2b-Q4_K_M");
    let exact = Reference::new(&model, graph(&model, Outputs::All), CacheFormat::F32).step(ids);
    for cache in [CacheFormat::F16, CacheFormat::Q8] {
        let expected = Reference::new(&model, graph(&model, Outputs::All), cache).step(ids);
        let mut state = loaded(&gpu, &model, Outputs::All, cache).state().unwrap();
        let mut found = read(&mut state, &ids[..48], 32);
        found.extend(read(&mut state, &ids[48..], 1));
        let (rounding, error) = (distance(&exact, &expected), distance(&found, &expected));
        // A value that f32 leaves on the other side of a step makes others cross theirs in the rows after it.
        assert!(error < 0.6 * rounding, "{cache:?}: {error} apart, rounding itself is {rounding}");
    }
}

/// The whole engine, with the limits and features that WebGPU guarantees and no more; and without subgroups alone.
#[test]
fn the_floor_of_webgpu_is_enough() {
    let (floor, without) = (GpuOptions::default().floor(), GpuOptions::default().without_subgroups());
    // With the limits of the adapter, kernels have more workgroup memory than at the floor: one model shows that they work.
    for (options, models) in
        [(floor, &["tiny-moe-Q4_K_M", "micro-e2b-Q8_0"][..]), (without, &["micro-e2b-Q8_0"])]
    {
        let gpu = gpu(&options);
        assert!(gpu.profile().subgroups.is_none());
        assert!(!options.floor || gpu.profile().largest_binding <= 128 << 20);
        for &name in models {
            let model = open(name);
            let ids = &prompt()[..40];
            let expected = Reference::new(&model, graph(&model, Outputs::All), CacheFormat::F32).step(ids);
            let all = loaded(&gpu, &model, Outputs::All, CacheFormat::F32);
            let mut state = all.state().unwrap();
            let mut found = read(&mut state, &ids[..23], 23);
            // Steps of a few rows, where the rest is compared as well.
            let whole = options.floor && name == "micro-e2b-Q8_0";
            found.extend(read(&mut state, &ids[23..37], if whole { 7 } else { 14 }));
            found.extend(read(&mut state, &ids[37..], 1));
            let apart = apart(&found, &expected);
            assert!(apart < LOGITS, "{name}: {apart} apart");
            if whole {
                greedy_tokens(name, &model, &loaded(&gpu, &model, Outputs::Last, CacheFormat::F32));
            }
        }
    }
}

/// Whoever stops listening in the middle of a reply goes on from wherever they like.
#[test]
fn a_reply_can_be_dropped() {
    let gpu = gpu(&GpuOptions::default());
    let model = open("micro-e2b-F16");
    let model = loaded(&gpu, &model, Outputs::Last, CacheFormat::F16);
    let ids = &prompt()[..40];
    let expected = generated(&mut model.state().unwrap(), ids, 12);
    let mut state = model.state().unwrap();
    // Three tokens are read; others are under way.
    assert_eq!(
        pollster::block_on(async {
            state.begin(ids, &Sampling::GREEDY, ids, 100).await.unwrap();
            [(); 3].map(|()| pollster::block_on(state.next_token()).unwrap())
        }),
        expected[..3]
    );
    // From where the listener stopped: what was chosen last is not read yet.
    state.truncate(ids.len() + 2);
    assert_eq!(state.len(), ids.len() + 2);
    assert_eq!(generated(&mut state, &expected[2..3], 9), expected[3..]);
    // From the prompt.
    state.truncate(ids.len() - 1);
    assert_eq!(generated(&mut state, &ids[ids.len() - 1..], 12), expected);
    // A future that is dropped before it ends.
    state.truncate(ids.len() - 1);
    let first = &ids[ids.len() - 1..];
    pollster::block_on(state.begin(first, &Sampling::GREEDY, first, 100)).unwrap();
    drop(state.next_token());
    state.truncate(0);
    assert_eq!(generated(&mut state, ids, 12), expected);
    // And a conversation that ends with steps under way.
    pollster::block_on(state.begin(&[5], &Sampling::GREEDY, &[5], 100)).unwrap();
    drop(state);
    assert_eq!(generated(&mut model.state().unwrap(), ids, 12), expected);
}

#[test]
fn a_state_can_be_set_back() {
    let gpu = gpu(&GpuOptions::default());
    let model = open("micro-e2b-F16");
    let mut state = loaded(&gpu, &model, Outputs::Last, CacheFormat::F16).state().unwrap();
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
    let model = open("micro-e2b-F16");
    let mut state = loaded(&gpu, &model, Outputs::Last, CacheFormat::F16).state().unwrap();
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
