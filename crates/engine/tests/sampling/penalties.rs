//! Bias and penalties, by worked examples.

use std::collections::BTreeMap;

use rullama_engine::{Sampler, SamplingOptions};

use crate::{plain, sampler};

/// The logits as the sampler adjusts them, up to a constant: the first is set to what it was.
fn adjusted(options: &SamplingOptions, suppressed: &[u32], logits: &[f32], recent: &[u32]) -> Vec<f32> {
    let mut found = vec![f32::NEG_INFINITY; logits.len()];
    let mut sampler = Sampler::new(options, suppressed).unwrap();
    for (id, probability) in sampler.distribution(logits, recent).unwrap() {
        found[id as usize] = probability.ln();
    }
    let shift = logits[0] - found[0];
    found.iter().map(|logit| logit + shift).collect()
}

#[track_caller]
fn assert_near(found: &[f32], expected: &[f32]) {
    let near = |(a, b): (&f32, &f32)| a == b || (a - b).abs() < 1e-4;
    assert!(
        found.len() == expected.len() && found.iter().zip(expected).all(near),
        "{found:?}, not {expected:?}"
    );
}

const LOGITS: [f32; 5] = [0.5, 2.0, -1.0, 0.0, 3.0];
/// Token 1 once, token 2 three times, token 3 twice; token 9 is none of the vocabulary.
const RECENT: [u32; 7] = [2, 1, 2, 3, 9, 2, 3];

#[test]
fn repetition_divides_above_zero_and_multiplies_below() {
    let options = SamplingOptions { repeat_penalty: 2.0, ..plain() };
    assert_near(&adjusted(&options, &[], &LOGITS, &RECENT), &[0.5, 1.0, -2.0, 0.0, 3.0]);
    let options = SamplingOptions { repeat_penalty: 0.5, ..plain() };
    assert_near(&adjusted(&options, &[], &LOGITS, &RECENT), &[0.5, 4.0, -0.5, 0.0, 3.0]);
}

#[test]
fn frequency_counts_and_presence_does_not() {
    let options = SamplingOptions { frequency_penalty: 0.25, ..plain() };
    assert_near(&adjusted(&options, &[], &LOGITS, &RECENT), &[0.5, 1.75, -1.75, -0.5, 3.0]);
    let options = SamplingOptions { presence_penalty: 0.25, ..plain() };
    assert_near(&adjusted(&options, &[], &LOGITS, &RECENT), &[0.5, 1.75, -1.25, -0.25, 3.0]);
    let options = SamplingOptions { presence_penalty: -0.25, ..plain() };
    assert_near(&adjusted(&options, &[], &LOGITS, &RECENT), &[0.5, 2.25, -0.75, 0.25, 3.0]);
}

#[test]
fn repetition_comes_before_frequency_and_presence_and_after_bias() {
    let options = SamplingOptions {
        repeat_penalty: 2.0,
        frequency_penalty: 0.5,
        presence_penalty: 0.25,
        logit_bias: BTreeMap::from([(1, 4.0), (2, 3.0), (4, -1.0)]),
        ..plain()
    };
    // Token 1: (2 + 4) / 2 − 0.5 − 0.25. Token 2: (−1 + 3) / 2 − 1.5 − 0.25.
    assert_near(&adjusted(&options, &[], &LOGITS, &RECENT), &[0.5, 2.25, -0.75, -1.25, 2.0]);
}

#[test]
fn the_window_is_the_end_of_what_was_seen() {
    let frequency = |repeat_last_n| SamplingOptions { frequency_penalty: 1.0, repeat_last_n, ..plain() };
    for (last, expected) in [
        (0, [0.5, 2.0, -1.0, 0.0, 3.0]),
        (1, [0.5, 2.0, -1.0, -1.0, 3.0]),
        (2, [0.5, 2.0, -2.0, -1.0, 3.0]),
        (6, [0.5, 1.0, -3.0, -2.0, 3.0]),
        (7, [0.5, 1.0, -4.0, -2.0, 3.0]),
        (64, [0.5, 1.0, -4.0, -2.0, 3.0]),
        (-1, [0.5, 1.0, -4.0, -2.0, 3.0]),
    ] {
        assert_near(&adjusted(&frequency(last), &[], &LOGITS, &RECENT), &expected);
    }
}

#[test]
fn counts_do_not_outlive_a_call() {
    let options = SamplingOptions { frequency_penalty: 1.0, ..plain() };
    let mut sampler = sampler(&options);
    let first = sampler.distribution(&LOGITS, &RECENT).unwrap();
    assert_ne!(sampler.distribution(&LOGITS, &[]).unwrap(), first);
    assert_eq!(sampler.distribution(&LOGITS, &RECENT).unwrap(), first);
}

#[test]
fn suppressed_tokens_and_those_with_a_bias_of_minus_infinity_never_come() {
    let options =
        SamplingOptions { logit_bias: BTreeMap::from([(1, f32::NEG_INFINITY), (77, 5.0)]), ..plain() };
    let never = f32::NEG_INFINITY;
    assert_near(&adjusted(&options, &[4, 1_000_000], &LOGITS, &[]), &[0.5, never, -1.0, 0.0, never]);
    // Not even where the model is certain, and whatever else speaks for the token.
    let certain = [0.5, f32::INFINITY, 0.0];
    assert_near(&adjusted(&options, &[], &certain, &[]), &[0.5, never, 0.0]);
    let praised = SamplingOptions { logit_bias: BTreeMap::from([(2, 100.0)]), ..plain() };
    assert_near(&adjusted(&praised, &[2], &LOGITS, &[]), &[0.5, 2.0, never, 0.0, 3.0]);
}

#[test]
fn greedy_follows_bias_and_penalties() {
    let choose =
        |options: SamplingOptions| Sampler::new(&options, &[4]).unwrap().sample(&LOGITS, &RECENT).unwrap().id;
    assert_eq!(choose(SamplingOptions::GREEDY), 1);
    assert_eq!(choose(SamplingOptions { presence_penalty: 1.75, ..SamplingOptions::GREEDY }), 0);
    let logit_bias = BTreeMap::from([(2, 3.5)]);
    assert_eq!(choose(SamplingOptions { logit_bias, ..SamplingOptions::GREEDY }), 2);
}
