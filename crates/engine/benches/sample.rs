//! How long one token takes to choose, at the size of Gemma 4's vocabulary, on one core.
//!
//! `cargo bench -p rullama-engine --bench sample` measures the default options, greedy, and what the
//! options cost that are off by default. Logits are normal with a few likely tokens, as those of a model
//! are; `flat` is the worst case for `top_p`, which then keeps and sorts nearly everything.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use criterion::Criterion;
use rullama_engine::{Sampler, SamplingOptions};

const VOCABULARY: usize = 262_144;

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800))
        .sample_size(20)
        .nresamples(5_000)
        .configure_from_args();
    let defaults = SamplingOptions { seed: Some(1), ..SamplingOptions::default() };
    let no_top_k = SamplingOptions { top_k: 0, ..defaults.clone() };
    let cases = [
        ("defaults", defaults.clone()),
        ("greedy", SamplingOptions::GREEDY),
        ("greedy, bias", {
            SamplingOptions { logit_bias: BTreeMap::from([(258_883, -1.0)]), ..SamplingOptions::GREEDY }
        }),
        ("penalties", SamplingOptions { repeat_penalty: 1.1, ..defaults.clone() }),
        ("penalties over all tokens", {
            SamplingOptions { repeat_penalty: 1.1, repeat_last_n: -1, ..defaults.clone() }
        }),
        ("top_k 1000", SamplingOptions { top_k: 1000, ..defaults.clone() }),
        ("typical_p 0.9", SamplingOptions { typical_p: 0.9, ..defaults.clone() }),
        ("top_k off", no_top_k.clone()),
        ("top_k off, typical_p 0.9", SamplingOptions { typical_p: 0.9, ..no_top_k.clone() }),
        ("top_k off, min_p 0.05 alone", { SamplingOptions { top_p: 1.0, min_p: 0.05, ..no_top_k.clone() } }),
        ("no filter", SamplingOptions { top_p: 1.0, ..no_top_k.clone() }),
        ("defaults, 5 top_logprobs", SamplingOptions { top_logprobs: Some(5), ..defaults }),
    ];
    let mut noise = Noise(1);
    let logits: Vec<f32> = (0..VOCABULARY).map(|_| noise.logit()).collect();
    let recent: Vec<u32> = (0..8192).map(|_| noise.below(VOCABULARY as u32)).collect();
    for (name, options) in &cases {
        measure(&mut criterion, name, options, &logits, &recent);
    }
    let flat: Vec<f32> = (0..VOCABULARY).map(|_| noise.unit()).collect();
    measure(&mut criterion, "top_k off, flat", &no_top_k, &flat, &recent);
    criterion.final_summary();
}

fn measure(criterion: &mut Criterion, name: &str, options: &SamplingOptions, logits: &[f32], recent: &[u32]) {
    let mut sampler = Sampler::new(options, &[]).expect("the options are in range");
    criterion.bench_function(name, |bencher| {
        bencher.iter(|| sampler.sample(black_box(logits), black_box(recent)).expect("the logits are finite"));
    });
}

/// Numbers that look random and are the same on every run.
struct Noise(u64);

impl Noise {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (((self.0 >> 32) * u64::from(end)) >> 32) as u32
    }

    fn unit(&mut self) -> f32 {
        self.below(1 << 24) as f32 / (1 << 24) as f32
    }

    /// Normal around −8, and one token in a thousand likelier than that.
    fn logit(&mut self) -> f32 {
        let normal = (0..12).map(|_| self.unit()).sum::<f32>() - 6.0;
        let likely = if self.below(1000) == 0 { 6.0 + 6.0 * self.unit() } else { 0.0 };
        (-8.0 + 2.5 * normal + likely) * 1.2
    }
}
