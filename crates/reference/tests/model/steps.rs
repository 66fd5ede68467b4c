//! What must not change a result: how a prompt is cut into steps, and which rows are asked for.

use crate::common::{Loaded, argmax};
use rullama_gemma::Outputs;
use rullama_graph::Graph;
use rullama_reference::{Caches, KvFormat, Matrix, ReferenceError, Row, Step, run};

const MODELS: [&str; 4] = ["micro-e2b-Q8_0", "tiny-e2b-Q4_K_M", "tiny-dense-Q4_K_M", "tiny-moe-Q4_K_M"];

/// Longer than two windows of every model.
fn prompt() -> Vec<u32> {
    std::iter::once(2).chain((0..130).map(|index| 300 + index * 37 % 1500)).collect()
}

fn step(model: &Loaded, graph: &Graph, caches: &mut Caches, ids: &[u32]) -> Matrix {
    pollster::block_on(run(graph, &model.weights, caches, &Step::tokens(ids), &mut ())).unwrap()
}

#[test]
fn the_last_row_alone_is_the_last_row_of_all() {
    for name in MODELS {
        let model = Loaded::open(name);
        let (last, all) = (model.graph(Outputs::Last), model.graph(Outputs::All));
        let mut caches = (model.caches(KvFormat::F32), model.caches(KvFormat::F32));
        // Twice, so that what the shorter graph left in the caches is looked at as well.
        for ids in [&prompt()[..], &[700, 701, 702]] {
            let last = step(&model, &last, &mut caches.0, ids);
            let all = step(&model, &all, &mut caches.1, ids);
            assert!(last.row(0) == all.row(ids.len() - 1), "{name}: not the same bits");
        }
    }
}

#[test]
fn steps_of_any_size_give_the_same_logits() {
    for name in MODELS {
        let model = Loaded::open(name);
        let graph = model.graph(Outputs::Last);
        let prompt = prompt();
        let whole = step(&model, &graph, &mut model.caches(KvFormat::F32), &prompt);
        for size in [1, 7, 32] {
            let mut caches = model.caches(KvFormat::F32);
            let mut logits = Matrix::default();
            for ids in prompt.chunks(size) {
                logits = step(&model, &graph, &mut caches, ids);
            }
            assert_eq!(caches.len(), prompt.len());
            assert!(logits == whole, "{name}: steps of {size} give other bits");
        }
    }
}

#[test]
fn a_cache_that_was_set_back_continues_as_if_nothing_had_followed() {
    let model = Loaded::open("tiny-e2b-Q4_K_M");
    let graph = model.graph(Outputs::Last);
    let prompt = prompt();
    let mut caches = model.caches(KvFormat::F16);
    step(&model, &graph, &mut caches, &prompt[..100]);
    let expected = step(&model, &graph, &mut caches.clone(), &prompt[100..]);
    step(&model, &graph, &mut caches, &[5, 6, 7, 8]);
    caches.truncate(100);
    assert!(step(&model, &graph, &mut caches, &prompt[100..]) == expected);
}

#[test]
fn rounded_caches_stay_close() {
    for name in MODELS {
        let model = Loaded::open(name);
        let graph = model.graph(Outputs::Last);
        // A text the model knows, on which its choices are clear.
        let ids = [2, 610, 483, 716, 312, 601, 1711, 311, 931, 466];
        let exact = step(&model, &graph, &mut model.caches(KvFormat::F32), &ids);
        for (format, allowed) in [(KvFormat::F16, 0.2), (KvFormat::Q8, 1.5)] {
            let rounded = step(&model, &graph, &mut model.caches(format), &ids);
            assert_ne!(exact, rounded, "{name}: {format:?} changes nothing");
            let apart =
                exact.values().iter().zip(rounded.values()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(apart <= allowed, "{name}, {format:?}: {apart} apart");
            assert_eq!(argmax(exact.row(0)), argmax(rounded.row(0)), "{name}, {format:?}");
        }
    }
}

#[test]
fn a_soft_row_that_is_an_embedding_acts_like_its_token() {
    // Without per-layer embeddings, which a soft row takes from the padding token.
    let model = Loaded::open("tiny-dense-Q4_K_M");
    let graph = model.graph(Outputs::Last);
    let table = model.vector("token_embd.weight");
    let width = 256;
    let row: Vec<f32> =
        table[700 * width..][..width].iter().map(|value| value * (width as f32).sqrt()).collect();
    let expected = step(&model, &graph, &mut model.caches(KvFormat::F32), &[2, 700, 701]);
    let soft = Step { rows: vec![Row::Token(2), Row::Soft(&row), Row::Token(701)], spans: Vec::new() };
    let mut caches = model.caches(KvFormat::F32);
    assert!(
        pollster::block_on(run(&graph, &model.weights, &mut caches, &soft, &mut ())).unwrap() == expected
    );
}

#[test]
fn bad_steps_are_refused_and_leave_the_caches_alone() {
    let model = Loaded::open("micro-e2b-Q8_0");
    let graph = model.graph(Outputs::Last);
    let mut caches = model.caches(KvFormat::F32);
    step(&model, &graph, &mut caches, &[2, 3]);
    let mut refuse = |step: Step<'_>| {
        let error = pollster::block_on(run(&graph, &model.weights, &mut caches, &step, &mut ())).unwrap_err();
        assert_eq!(caches.len(), 2);
        error
    };
    assert!(matches!(refuse(Step::tokens(&[])), ReferenceError::EmptyStep));
    assert!(matches!(
        refuse(Step::tokens(&[5, 2048])),
        ReferenceError::UnknownToken { id: 2048, vocabulary: 2048 }
    ));
    let short = Step { rows: vec![Row::Soft(&[1.0; 3])], spans: Vec::new() };
    assert!(matches!(refuse(short), ReferenceError::SoftWidth { found: 3, expected: 128 }));
    let bad = [f32::NAN; 128];
    let bad = Step { rows: vec![Row::Soft(&bad)], spans: Vec::new() };
    assert!(matches!(refuse(bad), ReferenceError::NotFinite { value, row: 0 } if value == "embed_scaled"));
}

/// Nothing held, so that every weight is read in pieces: the results are the same.
#[test]
fn weights_may_be_streamed() {
    let held = Loaded::open("tiny-moe-Q4_K_M");
    let streamed = Loaded::with_memory("tiny-moe-Q4_K_M", 0);
    let graph = held.graph(Outputs::Last);
    let expected = step(&held, &graph, &mut held.caches(KvFormat::F32), &prompt()[..40]);
    assert!(step(&streamed, &graph, &mut held.caches(KvFormat::F32), &prompt()[..40]) == expected);
}
