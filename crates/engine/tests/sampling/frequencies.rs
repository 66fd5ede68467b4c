//! Tokens are drawn as often as their probabilities say, by Pearson's chi-squared test. Seeds are fixed, so
//! the outcome is too.

use rullama_engine::{Sampler, SamplingOptions};

use crate::{definition, logits_of, plain};

const DRAWS: u32 = 40_000;

/// What chi-squared exceeds once in a thousand times, for one to seven degrees of freedom.
const LIMITS: [f64; 7] = [10.83, 13.82, 16.27, 18.47, 20.52, 22.46, 24.32];

fn check(name: &str, options: &SamplingOptions, logits: &[f32], recent: &[u32]) {
    let expected = definition::distribution(options, &[], logits, recent).unwrap();
    let mut sampler = Sampler::new(options, &[]).unwrap();
    let mut counts = vec![0_u32; logits.len()];
    for _ in 0..DRAWS {
        counts[sampler.sample(logits, recent).unwrap().id as usize] += 1;
    }
    let chi_squared: f64 = expected
        .iter()
        .map(|&(id, probability)| {
            let expected = probability * f64::from(DRAWS);
            (f64::from(counts[id as usize]) - expected).powi(2) / expected
        })
        .sum();
    let counted: u32 = expected.iter().map(|&(id, _)| counts[id as usize]).sum();
    assert_eq!(counted, DRAWS, "{name}: tokens were drawn that should not be: {counts:?}, {expected:?}");
    let limit = LIMITS[expected.len() - 2];
    assert!(chi_squared < limit, "{name}: {chi_squared:.1}, allowed {limit}: {counts:?}, {expected:?}");
}

#[test]
fn tokens_come_as_often_as_they_should() {
    let logits = logits_of(&[0.02, 0.3, 0.05, 0.25, 0.1, 0.18, 0.07, 0.03]);
    let recent = [1, 3, 3, 3, 5];
    for seed in [1, u64::MAX] {
        let off = SamplingOptions { seed: Some(seed), ..plain() };
        let penalties = SamplingOptions { repeat_penalty: 1.3, frequency_penalty: 0.2, ..off.clone() };
        for (name, options) in [
            ("no filter", off.clone()),
            ("cold", SamplingOptions { temperature: 0.5, ..off.clone() }),
            ("hot", SamplingOptions { temperature: 3.0, ..off.clone() }),
            ("top_k", SamplingOptions { top_k: 4, ..off.clone() }),
            ("top_k, hot", SamplingOptions { top_k: 4, temperature: 2.0, ..off.clone() }),
            ("typical_p, hot", SamplingOptions { typical_p: 0.7, temperature: 2.0, ..off.clone() }),
            ("top_p, hot", SamplingOptions { top_p: 0.8, temperature: 2.0, ..off.clone() }),
            ("top_p, cold", SamplingOptions { top_p: 0.8, temperature: 0.4, ..off.clone() }),
            ("min_p, hot", SamplingOptions { min_p: 0.2, temperature: 2.0, ..off.clone() }),
            ("top_k, top_p, hot", {
                SamplingOptions { top_k: 5, top_p: 0.58, temperature: 1.7, ..off.clone() }
            }),
            ("penalties", penalties.clone()),
            ("penalties, presence, hot", {
                SamplingOptions { presence_penalty: 0.5, temperature: 1.5, ..penalties }
            }),
        ] {
            check(name, &options, &logits, &recent);
        }
    }
}
