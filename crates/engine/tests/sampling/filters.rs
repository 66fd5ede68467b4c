//! The sampler's distribution is the one its options describe.

use proptest::prelude::*;
use rullama_engine::{Sampler, SamplingOptions};

use crate::{definition, ids, logits_of, plain};

/// Logits of many kinds: few tokens or several blocks of them, with ties or without, some ruled out.
fn logits() -> impl Strategy<Value = Vec<f32>> {
    let coarse = (-6_i8..6).prop_map(f32::from);
    let wild = prop_oneof![9 => -30.0_f32..30.0, 1 => Just(f32::NEG_INFINITY)];
    prop_oneof![
        4 => prop::collection::vec(-8.0_f32..8.0, 1..100),
        2 => prop::collection::vec(coarse, 1..100),
        2 => prop::collection::vec(wild, 2..100),
        2 => prop::collection::vec(-1.5_f32..1.5, 300..3000),
    ]
    .prop_map(|mut logits| {
        // One token that nothing rules out.
        logits[0] = logits[0].max(-6.0);
        logits
    })
}

/// A probability, often one of the ends.
fn part() -> impl Strategy<Value = f32> {
    prop_oneof![2 => Just(1.0_f32), 1 => Just(0.0_f32), 5 => 0.0_f32..1.0]
}

prop_compose! {
    fn options()(
        temperature in prop_oneof![1 => Just(0.0_f32), 3 => Just(1.0_f32), 6 => 0.05_f32..5.0],
        top_k in prop_oneof![1 => Just(0_u32), 1 => 1..120_u32],
        typical_p in prop_oneof![3 => Just(1.0_f32), 1 => part()],
        top_p in part(),
        min_p in prop_oneof![1 => Just(0.0_f32), 1 => part().prop_map(|p| p * p)],
        repeat_penalty in prop_oneof![Just(1.0_f32), 0.5_f32..2.0],
        frequency_penalty in prop_oneof![Just(0.0_f32), -2.0_f32..2.0],
        presence_penalty in prop_oneof![Just(0.0_f32), -2.0_f32..2.0],
        repeat_last_n in -1..40,
    ) -> SamplingOptions {
        SamplingOptions {
            temperature, top_k, typical_p, top_p, min_p,
            repeat_penalty, frequency_penalty, presence_penalty, repeat_last_n,
            ..plain()
        }
    }
}

fn check(
    options: &SamplingOptions,
    suppressed: &[u32],
    logits: &[f32],
    recent: &[u32],
) -> Result<(), TestCaseError> {
    let Some(expected) = definition::distribution(options, suppressed, logits, recent) else {
        return Ok(());
    };
    let mut sampler = Sampler::new(options, suppressed).unwrap();
    let found = sampler.distribution(logits, recent).unwrap();

    prop_assert!(found.is_sorted_by(|a, b| a.1 >= b.1), "the most probable first");
    let sum: f64 = found.iter().map(|&(_, probability)| f64::from(probability)).sum();
    prop_assert!((sum - 1.0).abs() < 1e-5, "the sum is {sum}");

    // Below what f32 can hold beside 1, a token may be missing.
    let mut found_by_id = found.clone();
    found_by_id.sort_unstable_by_key(|&(id, _)| id);
    let find =
        |id| found_by_id.binary_search_by_key(&id, |&(id, _)| id).ok().map(|at| f64::from(found_by_id[at].1));
    for &(id, probability) in &expected {
        let found = find(id).unwrap_or(0.0);
        prop_assert!(
            (found - probability).abs() <= 1e-5 * probability + 1e-30,
            "{id}: {found} for {probability}"
        );
    }
    prop_assert!(found.len() <= expected.len());

    let drawn = sampler.sample(logits, recent).unwrap().id;
    prop_assert!(find(drawn).is_some(), "{drawn} has no probability");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(target_family = "wasm") { 200 } else { 1500 }))]

    #[test]
    fn any_options_give_the_distribution_they_describe(
        options in options(),
        logits in logits(),
        recent in prop::collection::vec(0..1_u32 << 16, 0..60),
        bias in prop::collection::btree_map(0..1_u32 << 16, -3.0_f32..3.0, 0..4),
        suppressed in prop::collection::vec(0..1_u32 << 16, 0..3),
    ) {
        let tokens = logits.len() as u32;
        let recent: Vec<u32> = recent.iter().map(|id| id % tokens).collect();
        let suppressed: Vec<u32> = suppressed.iter().map(|id| id % tokens).filter(|&id| id != 0).collect();
        let logit_bias = bias.into_iter().map(|(id, bias)| (id % tokens, bias)).collect();
        check(&SamplingOptions { logit_bias, ..options }, &suppressed, &logits, &recent)?;
    }

    #[test]
    fn top_k_of_one_is_the_greedy_choice(
        logits in logits(),
        recent in prop::collection::vec(0..100_u32, 0..60),
        penalty in 0.5_f32..2.0,
        temperature in 0.01_f32..100.0,
    ) {
        let greedy = SamplingOptions { repeat_penalty: penalty, ..SamplingOptions::GREEDY };
        let one = SamplingOptions { top_k: 1, temperature, ..greedy.clone() };
        let [greedy, one] = [greedy, one].map(|options| {
            Sampler::new(&options, &[]).unwrap().sample(&logits, &recent).unwrap()
        });
        prop_assert_eq!(greedy, one);
    }
}

/// Each filter alone, on probabilities that can be followed by eye.
#[test]
fn filters_keep_what_they_should() {
    let logits = logits_of(&[0.05, 0.4, 0.1, 0.25, 0.2]);
    let off = plain();
    for (options, expected) in [
        (off.clone(), &[1, 3, 4, 2, 0][..]),
        (SamplingOptions { top_k: 2, ..off.clone() }, &[1, 3]),
        (SamplingOptions { top_k: 5, ..off.clone() }, &[1, 3, 4, 2, 0]),
        (SamplingOptions { top_k: 9, ..off.clone() }, &[1, 3, 4, 2, 0]),
        (SamplingOptions { top_p: 0.0, ..off.clone() }, &[1]),
        (SamplingOptions { top_p: 0.39, ..off.clone() }, &[1]),
        (SamplingOptions { top_p: 0.41, ..off.clone() }, &[1, 3]),
        (SamplingOptions { top_p: 0.84, ..off.clone() }, &[1, 3, 4]),
        (SamplingOptions { top_p: 0.86, ..off.clone() }, &[1, 3, 4, 2]),
        (SamplingOptions { min_p: 1.0, ..off.clone() }, &[1]),
        (SamplingOptions { min_p: 0.49, ..off.clone() }, &[1, 3, 4]),
        (SamplingOptions { min_p: 0.51, ..off.clone() }, &[1, 3]),
        // Information in nats: 0.92, 1.39, 1.61, 2.30, 3.00; the mean is 1.41.
        (SamplingOptions { typical_p: 0.0, ..off.clone() }, &[3]),
        (SamplingOptions { typical_p: 0.3, ..off.clone() }, &[3, 4]),
        (SamplingOptions { typical_p: 0.6, ..off.clone() }, &[1, 3, 4]),
        // Of what top_k leaves, 0.4, 0.25 and 0.2 become 0.47, 0.29 and 0.24.
        (SamplingOptions { top_k: 3, top_p: 0.46, ..off.clone() }, &[1]),
        (SamplingOptions { top_k: 3, top_p: 0.48, ..off.clone() }, &[1, 3]),
        // typical_p drops the likeliest; min_p then goes by the likeliest that is left.
        (SamplingOptions { typical_p: 0.3, min_p: 0.79, ..off.clone() }, &[3, 4]),
        (SamplingOptions { top_k: 4, typical_p: 0.3, min_p: 0.79, ..off.clone() }, &[3, 4]),
        // top_p sees probabilities before the temperature, however high.
        (SamplingOptions { top_p: 0.6, temperature: 100.0, ..off.clone() }, &[1, 3]),
        (SamplingOptions { min_p: 0.49, temperature: 100.0, ..off }, &[1, 3, 4]),
    ] {
        assert_eq!(ids(&options, &logits), expected, "{options:?}");
    }
}

/// A sum that is exactly the one asked for is enough for `top_p`, and not for `typical_p`.
#[test]
fn sums_that_are_just_reached() {
    let logits = [1.0; 4];
    for top_k in [0, 4] {
        assert_eq!(ids(&SamplingOptions { top_p: 0.5, top_k, ..plain() }, &logits), [0, 1]);
        assert_eq!(ids(&SamplingOptions { typical_p: 0.5, top_k, ..plain() }, &logits), [0, 1, 2]);
    }
}

/// With `top_k` off, the nucleus is the same however many blocks it takes to find it.
#[test]
fn a_large_nucleus_is_found_block_by_block() {
    let tokens = 20_000_u32;
    // The steps of a slope in mixed order, so that neighbours in rank are far apart in id.
    let logits: Vec<f32> = (0..tokens).map(|id| -((id * 7919 % tokens) as f32) / 5000.0).collect();
    let total: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
    let mut order: Vec<u32> = (0..tokens).collect();
    order.sort_by(|&a, &b| logits[b as usize].total_cmp(&logits[a as usize]).then(a.cmp(&b)));

    for top_p in [0.001, 0.02, 0.3, 0.9, 0.999] {
        let found = ids(&SamplingOptions { top_p, ..plain() }, &logits);
        assert_eq!(found, order[..found.len()], "{top_p}");
        let mass = |count: usize| -> f64 {
            order[..count].iter().map(|&id| f64::from(logits[id as usize]).exp() / total).sum()
        };
        // The sums of thousands of f32 weights are not exact to the last token.
        let near = 1e-6;
        assert!(mass(found.len()) >= f64::from(top_p) - near, "{top_p}: {} are too few", found.len());
        assert!(mass(found.len() - 1) < f64::from(top_p) + near, "{top_p}: {} are too many", found.len());
    }
}
