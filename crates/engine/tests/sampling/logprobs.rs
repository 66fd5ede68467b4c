//! Log-probabilities are the model's own, whatever the options make of them.

use std::collections::BTreeMap;

use rullama_engine::SamplingOptions;

use crate::{logits_of, plain, sampler};

#[test]
fn logprobs_come_only_when_asked_for() {
    let sampled = sampler(&plain()).sample(&[1.0, 2.0], &[]).unwrap();
    assert_eq!((sampled.logprob, sampled.top.len()), (None, 0));
    let sampled =
        sampler(&SamplingOptions { top_logprobs: Some(0), ..plain() }).sample(&[1.0, 1.0], &[]).unwrap();
    assert!((sampled.logprob.unwrap() - 0.5_f32.ln()).abs() < 1e-6);
    assert!(sampled.top.is_empty());
}

#[test]
fn logprobs_are_those_of_the_logits_as_they_came() {
    let probabilities = [0.05_f32, 0.4, 0.1, 0.25, 0.2];
    // A constant added to all logits changes nothing.
    let logits: Vec<f32> = logits_of(&probabilities).iter().map(|logit| logit + 7.5).collect();
    let options = SamplingOptions {
        top_logprobs: Some(3),
        temperature: 0.1,
        top_k: 1,
        repeat_penalty: 1.5,
        logit_bias: BTreeMap::from([(1, f32::NEG_INFINITY), (0, 20.0)]),
        ..plain()
    };
    let sampled = sampler(&options).sample(&logits, &[0, 1, 2]).unwrap();
    assert_eq!(sampled.id, 0);
    assert!((sampled.logprob.unwrap() - 0.05_f32.ln()).abs() < 1e-5);
    assert_eq!(sampled.top.iter().map(|top| top.id).collect::<Vec<_>>(), [1, 3, 4]);
    for top in sampled.top {
        assert!((top.logprob - probabilities[top.id as usize].ln()).abs() < 1e-5, "{top:?}");
    }
}

#[test]
fn there_are_no_more_logprobs_than_tokens() {
    let options = SamplingOptions { top_logprobs: Some(20), ..SamplingOptions::GREEDY };
    let sampled = sampler(&options).sample(&[3.0, f32::NEG_INFINITY, 4.0], &[]).unwrap();
    assert_eq!(sampled.top.iter().map(|top| top.id).collect::<Vec<_>>(), [2, 0]);
    let certain = sampler(&options).sample(&[3.0, f32::INFINITY], &[]).unwrap();
    assert_eq!(certain.logprob, Some(0.0));
    assert_eq!(certain.top[1].logprob, f32::NEG_INFINITY);
}
