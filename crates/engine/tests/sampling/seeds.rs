//! A seed is a promise: the same tokens everywhere, and in every later version.

use rullama_engine::{Sampler, SamplingOptions};

use crate::plain;

/// Logits made of whole numbers, so that they are the same on every platform.
fn logits(step: u32) -> Vec<f32> {
    (0..1000_u32).map(|id| ((id * 7919 + step * 104_729) % 1009) as f32 / 64.0 - 8.0).collect()
}

fn run(options: &SamplingOptions) -> Vec<u32> {
    let mut sampler = Sampler::new(options, &[]).unwrap();
    let mut tokens = Vec::new();
    for step in 0..12 {
        tokens.push(sampler.sample(&logits(step), &tokens).unwrap().id);
    }
    tokens
}

/// The expected tokens come from another program, written after the description alone.
#[test]
fn seeds_give_the_tokens_they_always_gave() {
    let seeded = |seed| SamplingOptions { seed: Some(seed), ..plain() };
    let defaults = SamplingOptions { seed: Some(42), ..SamplingOptions::default() };
    assert_eq!(run(&defaults), [752, 955, 202, 669, 740, 521, 935, 782, 207, 898, 158, 282]);
    assert_eq!(run(&seeded(42)), [614, 388, 776, 993, 628, 587, 231, 327, 616, 318, 218, 394]);
    let hot = SamplingOptions { temperature: 2.0, top_p: 0.9, ..seeded(u64::MAX) };
    assert_eq!(run(&hot), [73, 863, 624, 979, 54, 475, 355, 248, 563, 753, 745, 282]);
    let penalties = SamplingOptions { repeat_penalty: 1.3, min_p: 0.05, ..seeded(0) };
    assert_eq!(run(&penalties), [277, 725, 242, 801, 925, 145, 467, 202, 273, 21, 508, 553]);
}

#[test]
fn a_sampler_tells_its_seed_and_can_be_repeated_with_it() {
    let seeded = SamplingOptions { seed: Some(5), ..plain() };
    assert_eq!(Sampler::new(&seeded, &[]).unwrap().seed(), 5);
    assert_eq!(run(&seeded), run(&seeded));
    assert_ne!(run(&seeded), run(&SamplingOptions { seed: Some(6), ..plain() }));

    let random = SamplingOptions { seed: None, ..plain() };
    let [mut one, other] = [(); 2].map(|()| Sampler::new(&random, &[]).unwrap());
    assert_ne!(one.seed(), other.seed(), "options without a seed give each sampler its own");
    let mut tokens = Vec::new();
    for step in 0..12 {
        tokens.push(one.sample(&logits(step), &tokens).unwrap().id);
    }
    assert_eq!(run(&SamplingOptions { seed: Some(one.seed()), ..plain() }), tokens);
}

/// Looking at a distribution, or failing, leaves the random numbers where they were.
#[test]
fn only_sampling_uses_up_random_numbers() {
    let options = SamplingOptions { seed: Some(5), ..plain() };
    let mut sampler = Sampler::new(&options, &[]).unwrap();
    let mut tokens = Vec::new();
    for step in 0..12 {
        sampler.distribution(&logits(step), &[]).unwrap();
        sampler.sample(&[f32::NAN], &[]).unwrap_err();
        tokens.push(sampler.sample(&logits(step), &[]).unwrap().id);
    }
    assert_eq!(tokens, run(&options));
}

/// The same sampler gives the same tokens for vocabularies of changing size, as buffers are reused.
#[test]
fn buffers_carry_nothing_over() {
    let options = SamplingOptions { repeat_penalty: 1.2, typical_p: 0.9, top_p: 0.9, ..plain() };
    let mut used = Sampler::new(&options, &[]).unwrap();
    for size in [1000, 10, 500, 1, 1000] {
        let logits = &logits(3)[..size];
        let mut fresh = Sampler::new(&options, &[]).unwrap();
        let recent = [0, 9, 700];
        assert_eq!(used.distribution(logits, &recent), fresh.distribution(logits, &recent), "{size}");
    }
}
