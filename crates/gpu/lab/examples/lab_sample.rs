//! How long choosing a token takes at the size of Gemma 4's vocabulary: `cargo run --release -p rullama-gpu-lab --example lab_sample`.
//!
//! Logits are normal with a few likely tokens, as those of a model are; flat ones are the worst case of `top_p`.

#![expect(clippy::print_stdout, reason = "a program that prints a table")]

use rullama_gpu::{Gpu, GpuError, GpuOptions, Sampling};
use rullama_gpu_lab::SampleLab;

const VOCABULARY: u32 = 262_144;
const TOKENS: u32 = 200;

fn main() -> Result<(), GpuError> {
    let gpu = pollster::block_on(Gpu::open(&GpuOptions::default()))?;
    println!("{} through {}", gpu.profile().name, gpu.profile().backend);
    // A smaller number for slow machines.
    let tokens = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(TOKENS);

    let default = Sampling {
        temperature: 1.0,
        bias: vec![(258_880, f32::NEG_INFINITY), (258_881, f32::NEG_INFINITY)],
        repeat_last_n: 64,
        top_k: 64,
        top_p: 0.95,
        ..Sampling::GREEDY
    };
    let penalised = Sampling { repeat_penalty: 1.1, ..default.clone() };
    let no_top_k = Sampling { top_k: 0, ..default.clone() };
    let mut noise = Noise(1);
    let likely: Vec<f32> = (0..VOCABULARY).map(|_| noise.logit()).collect();
    let flat: Vec<f32> = (0..VOCABULARY).map(|_| noise.unit()).collect();
    let cases = [
        ("greedy", Sampling { temperature: 0.0, ..default.clone() }, &likely),
        ("default", default.clone(), &likely),
        ("default, flat", default.clone(), &flat),
        ("default, penalties over 64", penalised.clone(), &likely),
        ("default, penalties over 8192", Sampling { repeat_last_n: 8192, ..penalised }, &likely),
        ("top_k 256", Sampling { top_k: 256, ..default.clone() }, &likely),
        ("top_k 1000", Sampling { top_k: 1000, ..default.clone() }, &likely),
        ("top_k 1000, flat", Sampling { top_k: 1000, ..default.clone() }, &flat),
        ("top_k 5000", Sampling { top_k: 5000, ..default }, &likely),
        ("top_k 0, top_p 0.9", Sampling { top_p: 0.9, ..no_top_k.clone() }, &likely),
        ("top_k 0, top_p 0.9, flat", Sampling { top_p: 0.9, ..no_top_k.clone() }, &flat),
        ("min_p 0.05 alone", Sampling { top_p: 1.0, min_p: 0.05, ..no_top_k.clone() }, &likely),
        ("no filter", Sampling { top_p: 1.0, ..no_top_k }, &likely),
    ];
    let history: Vec<u32> = (0..8192).map(|_| (noise.unit() * VOCABULARY as f32) as u32).collect();
    let mut lab = SampleLab::new(&gpu, VOCABULARY)?;
    for (name, sampling, logits) in &cases {
        lab.begin(sampling, &history)?;
        let seconds = lab.time(logits, tokens)?;
        println!("{name:<30} {:>2} dispatches {:>9.1} µs", lab.dispatches(), 1e6 * seconds);
    }
    Ok(())
}

struct Noise(u64);

impl Noise {
    fn unit(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1 << 24) as f32
    }

    fn logit(&mut self) -> f32 {
        let normal = (0..6).map(|_| self.unit()).sum::<f32>() * 1.41 - 4.24;
        if self.unit() < 2e-4 { 15.0 + 3.0 * normal } else { 3.0 * normal - 4.0 }
    }
}
