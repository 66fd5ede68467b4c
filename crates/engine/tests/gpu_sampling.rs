//! The GPU chooses as the sampler does: the same tokens for the same seed and logits, token by token.
//!
//! A draw that is the same for many random numbers is the same distribution, and more than that. A few draws may differ:
//! the GPU's exponentials may differ in the last digit, and a random number may fall between the two boundaries that
//! two such numbers make. One in a hundred is far more than that ever does, and far less than any mistake.

#![cfg(all(feature = "gpu", not(target_family = "wasm")))]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;

use rullama_engine::{SampleError, Sampler, SamplingOptions};
use rullama_gpu::{Gpu, GpuOptions};
use rullama_gpu_lab::SampleLab;

fn gpu() -> Gpu {
    pollster::block_on(Gpu::open(&GpuOptions::default().floor()))
        .expect("these tests need an adapter; a software one such as lavapipe will do")
}

struct Noise(u64);

impl Noise {
    fn word(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    fn unit(&mut self) -> f32 {
        (self.word() >> 8) as f32 / (1 << 24) as f32
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.word() as usize % choices.len()]
    }

    /// About normal.
    fn normal(&mut self) -> f32 {
        (0..6).map(|_| self.unit()).sum::<f32>() * 1.41 - 4.24
    }
}

/// How logits may lie.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// As those of a model that is fairly sure.
    Peaked,
    /// As those of a model that is not.
    Normal,
    /// All within one.
    Flat,
    /// All the same.
    Equal,
    /// Few different values.
    Coarse,
    /// The likeliest side by side.
    Clustered,
    /// Every 256th is likely.
    Aligned,
    /// Many impossible, over a wide range.
    Sparse,
}

const SHAPES: [Shape; 8] = [
    Shape::Peaked,
    Shape::Normal,
    Shape::Flat,
    Shape::Equal,
    Shape::Coarse,
    Shape::Clustered,
    Shape::Aligned,
    Shape::Sparse,
];

fn logits(shape: Shape, vocabulary: u32, noise: &mut Noise) -> Vec<f32> {
    let start = noise.word() % vocabulary;
    let mut logit = |id: u32| match shape {
        Shape::Peaked if noise.unit() < 1e-3 => 18.0 + 2.0 * noise.normal(),
        Shape::Peaked | Shape::Normal => 3.0 * noise.normal() - 4.0,
        Shape::Flat => noise.unit(),
        Shape::Equal => -3.5,
        Shape::Coarse => (noise.unit() * 4.0).floor() - 2.0,
        Shape::Clustered if (start..start + 3000).contains(&id) => 9.0 + noise.unit(),
        Shape::Aligned if id % 256 == 7 => 12.0 + noise.unit(),
        Shape::Clustered | Shape::Aligned => noise.normal(),
        Shape::Sparse if noise.unit() < 0.9 => -1e30,
        Shape::Sparse => 40.0 * noise.normal(),
    };
    let mut logits: Vec<f32> = (0..vocabulary).map(&mut logit).collect();
    logits[start as usize] = logits[start as usize].max(-1.0);
    logits
}

fn options(vocabulary: u32, noise: &mut Noise) -> SamplingOptions {
    let mut options = SamplingOptions {
        temperature: noise.one_of(&[1.0, 1.0, 0.7, 0.2, 1.5, 3.0, 0.0]),
        top_k: noise.one_of(&[0, 0, 1, 5, 64, 64, 1000, 1024, 1500, 40_000]),
        top_p: noise.one_of(&[1.0, 0.95, 0.95, 0.9, 0.5, 0.99, 0.0]),
        min_p: noise.one_of(&[0.0, 0.0, 0.05, 0.001, 1.0]),
        repeat_last_n: noise.one_of(&[64, 7, 0, -1, 300]),
        seed: Some(u64::from(noise.word())),
        ..SamplingOptions::default()
    };
    if noise.unit() < 0.4 {
        options.repeat_penalty = noise.one_of(&[1.0, 1.1, 0.9, 1.5]);
        options.frequency_penalty = noise.one_of(&[0.0, 0.2, -0.1, 1.0]);
        options.presence_penalty = noise.one_of(&[0.0, 0.5, -0.5]);
    }
    if noise.unit() < 0.4 {
        let bias = |_| (noise.word() % (vocabulary + 2), noise.one_of(&[-1.0, 3.0, f32::NEG_INFINITY]));
        options.logit_bias = (0..20).map(bias).collect::<BTreeMap<_, _>>();
    }
    options
}

/// Tokens compared, and of them those that differ.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    compared: usize,
    different: usize,
}

/// Both choose `count` tokens, one after another, each from the same logits. The GPU does not wait for anybody; the
/// sampler is told the GPU's tokens, so that one difference does not make others.
fn compare(
    lab: &mut SampleLab<'_>,
    options: &SamplingOptions,
    logits: &[f32],
    history: &[u32],
    count: usize,
) -> Tally {
    let suppressed = [3, 4, u32::MAX];
    let mut sampler = Sampler::new(options, &suppressed).unwrap();
    let sampling = sampler.on_device(4096).unwrap();
    lab.begin(&sampling, history).unwrap();
    let mut recent = history.to_vec();
    let mut tally = Tally::default();
    for chosen in pollster::block_on(lab.choose(logits, count)).unwrap() {
        match sampler.sample(logits, &recent) {
            Ok(sampled) => {
                assert_eq!((chosen.status, chosen.input), (0, chosen.token), "{options:?}");
                tally.compared += 1;
                tally.different += usize::from(chosen.token != sampled.id);
                recent.push(chosen.token);
            }
            Err(SampleError::AllSuppressed { .. }) => assert_eq!(chosen.status, 2, "{options:?}"),
            Err(error) => panic!("{error}"),
        }
    }
    tally
}

/// Many options on logits of every shape.
fn check(vocabulary: u32, cases: usize, count: usize) {
    let gpu = gpu();
    let mut noise = Noise(u64::from(vocabulary));
    let mut lab = SampleLab::new(&gpu, vocabulary).unwrap();
    let mut all = Tally::default();
    for case in 0..cases {
        let shape = SHAPES[case % SHAPES.len()];
        let options = options(vocabulary, &mut noise);
        let logits = logits(shape, vocabulary, &mut noise);
        let history: Vec<u32> = (0..noise.word() % 100).map(|_| noise.word() % (vocabulary + 3)).collect();
        let tally = compare(&mut lab, &options, &logits, &history, count);
        all.compared += tally.compared;
        all.different += tally.different;
        assert!(tally.different * 20 <= count, "{tally:?} {shape:?} {options:?}");
    }
    assert!(all.compared > cases && all.different * 100 <= all.compared, "{vocabulary}: {all:?}");
}

#[test]
fn tokens_are_those_of_the_sampler_with_a_vocabulary_of_5() {
    check(5, 70, 30);
}

#[test]
fn tokens_are_those_of_the_sampler_with_a_vocabulary_of_2048() {
    check(2048, 80, 30);
}

#[test]
fn tokens_are_those_of_the_sampler_with_a_vocabulary_of_40003() {
    check(40_003, 24, 8);
}

#[test]
fn tokens_are_those_of_the_sampler_with_the_vocabulary_of_gemma() {
    check(262_144, 10, 4);
}

/// More blocks than lanes.
#[test]
fn tokens_are_those_of_the_sampler_with_a_vocabulary_of_600003() {
    check(600_003, 6, 2);
}

/// Tokens enter the window, are seen several times there, and leave it again.
#[test]
fn penalties_follow_the_window_over_many_tokens() {
    let gpu = gpu();
    let mut noise = Noise(9);
    let logits = logits(Shape::Normal, 300, &mut noise);
    let mut lab = SampleLab::new(&gpu, 300).unwrap();
    for (repeat_last_n, temperature, top_k) in
        [(1, 1.0, 64), (7, 0.0, 0), (7, 1.0, 20), (64, 1.0, 0), (-1, 0.8, 64)]
    {
        let options = SamplingOptions {
            repeat_last_n,
            repeat_penalty: 1.2,
            frequency_penalty: 0.6,
            presence_penalty: 0.4,
            temperature,
            top_k,
            seed: Some(11),
            ..SamplingOptions::default()
        };
        for history in [&[][..], &[8; 5], &[1, 2, 3, 2, 1, 900, 2]] {
            let tally = compare(&mut lab, &options, &logits, history, 150);
            assert!(tally.compared == 150 && tally.different <= 1, "{tally:?} {options:?}");
        }
    }
}
