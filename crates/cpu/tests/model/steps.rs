//! What must not change a result: how a prompt is cut into steps, which rows are asked for, and what was held or dropped.

use std::{future::Future, pin::pin, task::Context};

use rullama_cpu::{CpuError, Executor, Row, Step};
use rullama_gemma::Outputs;
use rullama_graph::CacheFormat;

use crate::common::Loaded;

const MODELS: [&str; 4] = ["micro-e2b-Q8_0", "tiny-e2b-Q4_K_M", "tiny-dense-Q4_K_M", "tiny-moe-Q4_K_M"];

/// Longer than two windows of every model.
fn prompt() -> Vec<u32> {
    std::iter::once(2).chain((0..130).map(|index| 300 + index * 37 % 1500)).collect()
}

#[test]
fn steps_of_any_size_give_the_same_bits() {
    for name in MODELS {
        steps_of_any_size(name, Executor::instructions()[0]);
    }
    for instructions in Executor::instructions().into_iter().skip(1) {
        steps_of_any_size("tiny-e2b-Q4_K_M", instructions);
    }
}

fn steps_of_any_size(name: &str, instructions: &str) {
    let model = Loaded::open(name).with_instructions(instructions);
    let (last, all) = (model.graph(Outputs::Last), model.graph(Outputs::All));
    let prompt = prompt();
    let whole = model.step(&last, &mut model.caches(CacheFormat::F32), &prompt);
    let every = model.step(&all, &mut model.caches(CacheFormat::F32), &prompt);
    assert!(whole.values == every.row(prompt.len() - 1), "{name}: the last row alone has other bits");
    for size in [1, 7, 32] {
        let mut caches = model.caches(CacheFormat::F32);
        let mut logits = None;
        for ids in prompt.chunks(size) {
            logits = Some(model.step(&last, &mut caches, ids));
        }
        assert_eq!(caches.len(), prompt.len());
        assert!(logits.as_ref() == Some(&whole), "{name}, {instructions}: steps of {size} give other bits");
    }
}

/// Nothing held, so that every weight is read in pieces: the results are the same.
#[test]
fn weights_may_be_streamed() {
    let held = Loaded::open("tiny-moe-Q4_K_M");
    let streamed = Loaded::with_memory("tiny-moe-Q4_K_M", 0);
    let graph = held.graph(Outputs::Last);
    let ids = &prompt()[..40];
    let expected = held.step(&graph, &mut held.caches(CacheFormat::F32), ids);
    assert!(streamed.step(&graph, &mut held.caches(CacheFormat::F32), ids) == expected);
}

/// Sliding layers forget rows, but not those that a conversation that is set back needs; set back further, it is empty.
#[test]
fn a_cache_is_set_back_as_far_as_its_windows_reach() {
    let model = Loaded::open("tiny-e2b-Q4_K_M");
    let graph = model.graph(Outputs::Last);
    for format in CacheFormat::ALL {
        let mut caches = model.caches(format);
        let ids: Vec<u32> = (0..2600).map(|index| 300 + index * 37 % 1500).collect();
        for ids in ids.chunks(64) {
            model.step(&graph, &mut caches, ids);
        }
        let expected = model.step(&graph, &mut caches.clone(), &[700, 701]);
        model.step(&graph, &mut caches, &[5, 6, 7]);
        caches.truncate(2600);
        assert_eq!(caches.len(), 2600);
        assert!(model.step(&graph, &mut caches, &[700, 701]) == expected, "{format:?}");
        caches.truncate(20);
        assert_eq!(caches.len(), 0, "{format:?}: rows that the window needs are gone");
        model.step(&graph, &mut caches, &[2, 3]);
        assert_eq!(caches.len(), 2);
    }
}

#[test]
fn a_step_that_is_dropped_or_refused_leaves_the_caches_alone() {
    let model = Loaded::open("micro-e2b-Q8_0");
    let graph = model.graph(Outputs::Last);
    let mut caches = model.caches(CacheFormat::F32);
    model.step(&graph, &mut caches, &[2, 3]);
    let expected = model.step(&graph, &mut caches.clone(), &[4, 5]);
    {
        // The executor's weights are read, so a step of a few tokens pauses after each embedding and at its end.
        let (step, mut progress) = (Step::tokens(&[7, 8, 9]), |_, _| {});
        let mut run = pin!(model.executor.run(&graph, &mut caches, &step, &mut progress));
        let mut context = Context::from_waker(std::task::Waker::noop());
        for _ in 0..3 {
            assert!(run.as_mut().poll(&mut context).is_pending());
        }
    }
    assert_eq!(caches.len(), 2);
    let mut refuse = |step: Step<'_>| {
        let mut progress = |_, _| {};
        let error = pollster::block_on(model.executor.run(&graph, &mut caches, &step, &mut progress));
        assert_eq!(caches.len(), 2);
        error.unwrap_err()
    };
    assert!(matches!(refuse(Step::tokens(&[])), CpuError::EmptyStep));
    assert!(matches!(refuse(Step::tokens(&[5, 2048])), CpuError::UnknownToken { id: 2048, .. }));
    let bad = [f32::NAN; 128];
    let bad = Step { rows: vec![Row::Soft(&bad)], ..Step::default() };
    assert!(matches!(refuse(bad), CpuError::NotFinite { value, tokens: 3 } if value == "embed_scaled"));
    assert!(model.step(&graph, &mut caches, &[4, 5]) == expected);
}
