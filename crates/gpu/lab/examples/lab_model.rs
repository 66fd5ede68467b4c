//! Times of a model's steps, kernel by kernel: `lab_model FILE [ROWS POSITION]…`.

use std::{collections::BTreeMap, rc::Rc, time::Instant};

use rullama_gemma::{Config, Outputs, text};
use rullama_gguf::open_path;
use rullama_gpu::{Gpu, GpuModel, GpuOptions, GpuState, GpuWeights, ModelOptions, Sampling};

/// Steps that are timed together.
const ROUNDS: u32 = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    pollster::block_on(run())
}

#[expect(clippy::print_stdout, reason = "printing is what this is for")]
async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (file, sizes) = arguments.split_first().ok_or("lab_model FILE [ROWS POSITION]…")?;
    let sizes: Vec<u32> = sizes.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    let model = open_path(file).await?;
    let graph = text(&model, &Config::read(&model)?, Outputs::Last)?;
    let gpu = Gpu::open(&GpuOptions::default()).await?;
    println!("{:?}", gpu.profile());
    let started = Instant::now();
    let options = ModelOptions::default().context(8192);
    let weights = GpuWeights::new(gpu, Rc::new(model));
    let loaded = Rc::new(GpuModel::load(&weights, graph, options, &mut |_, _| {}).await?);
    println!("loaded in {:.2} s", started.elapsed().as_secs_f64());
    for size in sizes.chunks_exact(2) {
        time(&mut loaded.state()?, size[0], size[1]).await?;
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "printing is what this is for")]
async fn time(state: &mut GpuState, rows: u32, position: u32) -> Result<(), Box<dyn std::error::Error>> {
    for first in (0..position).step_by(512) {
        state.step(&vec![5; 512.min(position - first) as usize]).await?;
    }
    let ids = vec![7; rows as usize];
    let mut each = 0.0;
    for round in 0..ROUNDS + 3 {
        let started = Instant::now();
        state.step(&ids).await?;
        state.truncate(position as usize);
        if round >= 3 {
            each += started.elapsed().as_secs_f64() / f64::from(ROUNDS);
        }
    }
    let rate = f64::from(rows) / each;
    println!("\n{:.3} ms a step of {rows} at {position}, {rate:.1} tokens a second", 1e3 * each);
    if rows == 1 {
        decode(state, position).await?;
    }
    state.profile(rows).await?;
    let report = state.profile(rows).await?;
    let mut kernels: BTreeMap<&str, (u32, f64, u64)> = BTreeMap::new();
    for dispatch in &report.dispatches {
        let entry = kernels.entry(&dispatch.kernel).or_default();
        entry.0 += 1;
        entry.1 += dispatch.seconds.unwrap_or(0.0);
        entry.2 += dispatch.weight_bytes;
    }
    let all: f64 = kernels.values().map(|entry| entry.1).sum();
    let bytes = report.weight_bytes();
    println!("{} dispatches, {:.3} ms, {bytes} bytes of weights", report.dispatches.len(), 1e3 * all);
    let mut kernels: Vec<_> = kernels.into_iter().collect();
    kernels.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
    for (kernel, (count, seconds, bytes)) in kernels {
        let (each, rate) = (1e6 * seconds / f64::from(count), bytes as f64 / seconds / 1e9);
        println!("{:8.1} µs {count:4} × {each:7.2} µs {rate:8.1} GB/s  {kernel}", 1e6 * seconds);
    }
    Ok(())
}

/// The loop that chooses tokens on the GPU, several steps ahead.
#[expect(clippy::print_stdout, reason = "printing is what this is for")]
async fn decode(state: &mut GpuState, position: u32) -> Result<(), Box<dyn std::error::Error>> {
    const TOKENS: usize = 256;
    let default = Sampling { temperature: 1.0, top_k: 64, top_p: 0.95, ..Sampling::GREEDY };
    for (name, sampling) in [("default", default), ("greedy", Sampling::GREEDY)] {
        state.begin(&[7], &sampling, &[7], TOKENS).await?;
        state.next_token().await?;
        let started = Instant::now();
        for _ in 1..TOKENS {
            state.next_token().await?;
        }
        let each = started.elapsed().as_secs_f64() / (TOKENS - 1) as f64;
        println!("decode, {name}: {:.3} ms a token, {:.1} tokens a second", 1e3 * each, 1.0 / each);
        state.truncate(position as usize);
    }
    Ok(())
}
