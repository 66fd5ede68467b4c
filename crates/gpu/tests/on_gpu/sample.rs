//! Choosing tokens on the GPU, as far as it can be told without the sampler of the CPU. That both choose the same is
//! tested beside that sampler, in the engine.

use crate::common::{self, Lent};
use std::collections::HashMap;

use naga::valid::{Capabilities, ValidationFlags, Validator};
use rullama_gpu::{Catalogue, Dialect, Gpu, GpuOptions, Sampling};
use rullama_gpu_lab::{Chosen, SampleLab};

fn gpu() -> Lent {
    common::gpu(&GpuOptions::default().floor())
}

/// Every filter and penalty off, at temperature 1.
fn plain() -> Sampling {
    Sampling { temperature: 1.0, repeat_last_n: 64, ..Sampling::GREEDY }
}

/// Options that take every way there is.
fn ways() -> [Sampling; 7] {
    [
        Sampling { temperature: 0.0, ..plain() },
        Sampling { top_k: 3, ..plain() },
        Sampling { top_k: 64, top_p: 0.95, ..plain() },
        plain(),
        Sampling { min_p: 0.1, ..plain() },
        Sampling { top_p: 0.9, ..plain() },
        Sampling { top_k: 1500, top_p: 0.9, min_p: 0.01, ..plain() },
    ]
}

/// A lab for each size of vocabulary, because kernels take long to compile.
struct Labs<'g>(&'g Gpu, HashMap<usize, SampleLab<'g>>);

impl<'g> Labs<'g> {
    fn new(gpu: &'g Gpu) -> Self {
        Self(gpu, HashMap::new())
    }

    fn choose(&mut self, sampling: &Sampling, logits: &[f32], count: usize) -> Vec<Chosen> {
        let size = logits.len();
        let lab = self.1.entry(size).or_insert_with(|| SampleLab::new(self.0, size as u32).unwrap());
        lab.begin(sampling, &[]).unwrap();
        pollster::block_on(lab.choose(logits, count)).unwrap()
    }

    fn tokens(&mut self, sampling: &Sampling, logits: &[f32], count: usize) -> Vec<u32> {
        tokens(self.choose(sampling, logits, count))
    }
}

fn tokens(chosen: Vec<Chosen>) -> Vec<u32> {
    assert!(chosen.iter().all(|chosen| chosen.status == 0 && chosen.input == chosen.token), "{chosen:?}");
    chosen.into_iter().map(|chosen| chosen.token).collect()
}

/// Numbers from 0 to 1.
struct Noise(u64);

impl Noise {
    fn unit(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1 << 24) as f32
    }
}

#[test]
fn kernels_are_valid() {
    for vocabulary in [1, 5, 2048, 262_144, 1_000_000] {
        for spec in Catalogue::sampling_kernels(vocabulary) {
            let source = spec.compose(Dialect::Naga);
            let module = naga::front::wgsl::parse_str(&source)
                .unwrap_or_else(|error| panic!("{spec}: {}", error.emit_to_string(&source)));
            Validator::new(ValidationFlags::all(), Capabilities::empty())
                .validate(&module)
                .unwrap_or_else(|error| panic!("{spec}: {}", error.emit_to_string(&source)));
            assert!(!spec.uses_subgroups());
        }
    }
}

#[test]
fn few_dispatches_choose_a_token() {
    let gpu = gpu();
    let mut lab = SampleLab::new(&gpu, 2000).unwrap();
    let counts = ways().map(|sampling| {
        let penalised = Sampling { repeat_penalty: 1.1, bias: vec![(3, -1.0)], ..sampling };
        lab.begin(&penalised, &[1, 2]).unwrap();
        lab.dispatches()
    });
    assert_eq!(counts, [2, 2, 2, 3, 3, 3, 3]);
}

#[test]
fn the_likeliest_token_is_the_first_of_the_largest() {
    let gpu = gpu();
    let mut labs = Labs::new(&gpu);
    let greedy = Sampling { temperature: 0.0, ..plain() };
    let mut noise = Noise(3);
    for vocabulary in [1, 5, 255, 256, 257, 16_384, 16_385, 100_003] {
        // Few different values, so that there are many ties.
        let mut logits: Vec<f32> = (0..vocabulary).map(|_| (noise.unit() * 9.0).floor() - 4.0).collect();
        for _ in 0..3 {
            let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let first = logits.iter().position(|&logit| logit == largest).unwrap();
            assert_eq!(labs.tokens(&greedy, &logits, 1), [first as u32], "{vocabulary}");
            logits[first] = -1000.0;
        }
    }
    assert_eq!(labs.tokens(&greedy, &[-1.0, -0.0, 0.0], 1), [1]);
    assert_eq!(labs.tokens(&greedy, &[-1.0, 0.0, -0.0], 1), [1]);
}

#[test]
fn logits_that_are_not_finite_and_an_empty_choice_have_a_status() {
    let gpu = gpu();
    let mut labs = Labs::new(&gpu);
    for vocabulary in [1, 2000] {
        for sampling in ways() {
            for at in [0, vocabulary - 1] {
                for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                    let mut logits = vec![0.25; vocabulary];
                    logits[at] = bad;
                    // The step went wrong, even if the token is suppressed.
                    for bias in [vec![], vec![(at as u32, f32::NEG_INFINITY)]] {
                        let chosen = labs.choose(&Sampling { bias, ..sampling.clone() }, &logits, 1);
                        assert_eq!(chosen, [Chosen { token: 0, status: 1, input: 0 }], "{sampling:?}");
                    }
                }
            }
            let bias = (0..vocabulary as u32).map(|id| (id, f32::NEG_INFINITY)).collect();
            let suppressed = Sampling { bias, ..sampling };
            assert_eq!(labs.choose(&suppressed, &vec![0.5; vocabulary], 1)[0].status, 2);
        }
    }
}

/// A bias that takes a finite logit beyond the largest number makes its token certain; the model is sound.
#[test]
fn a_bias_that_overflows_makes_a_token_certain() {
    let gpu = gpu();
    let mut labs = Labs::new(&gpu);
    for sampling in ways() {
        for temperature in [sampling.temperature, 2.0 * sampling.temperature] {
            let bias = vec![(2, f32::MAX), (3, f32::MIN)];
            let sampling = Sampling { temperature, bias, ..sampling.clone() };
            let mut logits = vec![1.0, 1e37, 1e38, -1e38, -2.0];
            assert_eq!(labs.tokens(&sampling, &logits, 4), [2; 4], "{sampling:?}");
            logits.resize(3000, 0.0);
            assert_eq!(labs.tokens(&sampling, &logits, 4), [2; 4], "{sampling:?}");
        }
    }
}

#[test]
fn extreme_temperatures_have_their_limits() {
    let gpu = gpu();
    let mut labs = Labs::new(&gpu);
    let logits = [1.0, 5.0, 3.0, 4.999];
    for sampling in ways() {
        for temperature in [1e-5, f32::MIN_POSITIVE, 1e-45] {
            assert_eq!(labs.tokens(&Sampling { temperature, ..sampling.clone() }, &logits, 3), [1; 3]);
        }
    }
    for temperature in [1e30, f32::MAX] {
        let mut counts = [0; 4];
        for token in labs.tokens(&Sampling { temperature, ..plain() }, &logits, 400) {
            counts[token as usize] += 1;
        }
        assert!(counts.iter().all(|count| (70..130).contains(count)), "{counts:?}");
    }
}

#[test]
fn a_failure_uses_up_no_random_number() {
    let gpu = gpu();
    let mut labs = Labs::new(&gpu);
    let logits: Vec<f32> = (0..500).map(|id| (id % 7) as f32).collect();
    let mut broken = logits.clone();
    broken[77] = f32::NAN;
    let mut lab = SampleLab::new(&gpu, 500).unwrap();
    for sampling in ways() {
        lab.begin(&sampling, &[]).unwrap();
        pollster::block_on(lab.choose(&broken, 3)).unwrap();
        let after = pollster::block_on(lab.choose(&logits, 5)).unwrap();
        assert_eq!(after, labs.choose(&sampling, &logits, 5));
    }
}
