//! Times of a model's steps, kernel by kernel: `lab_model FILE [ROWS POSITION]…`. With `together` before the numbers, rows are
//! those of conversations that are decoded together.

use std::{collections::BTreeMap, rc::Rc, time::Instant};

use rullama_gemma::{Config, Outputs, text};
use rullama_gguf::open_path;
use rullama_gpu::{Gpu, GpuModel, GpuOptions, GpuState, GpuWeights, ModelOptions, PlanReport, Sampling};

/// Steps that are timed together.
const ROUNDS: u32 = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    pollster::block_on(run())
}

#[expect(clippy::print_stdout, reason = "printing is what this is for")]
async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (file, sizes) = arguments.split_first().ok_or("lab_model FILE [ROWS POSITION]…")?;
    let (together, sizes) = match sizes.split_first() {
        Some((first, sizes)) if first == "together" => (true, sizes),
        _ => (false, sizes),
    };
    let sizes: Vec<u32> = sizes.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    let model = open_path(file).await?;
    let graph = text(&model, &Config::read(&model)?, Outputs::Last)?;
    let gpu = Gpu::open(&GpuOptions::default()).await?;
    println!("{:?}", gpu.profile());
    let started = Instant::now();
    let mut options = ModelOptions::default().context(if together { 1024 } else { 8192 });
    if together {
        options.conversations = 16;
    }
    let weights = GpuWeights::new(gpu, Rc::new(model));
    let loaded = Rc::new(GpuModel::load(&weights, graph, options, &mut |_, _| {}).await?);
    println!("loaded in {:.2} s", started.elapsed().as_secs_f64());
    for size in sizes.chunks_exact(2) {
        let mut state = loaded.state()?;
        if together {
            decode_together(&loaded, size[0]).await?;
            profile_together(&mut state, size[0], size[1]).await?;
        } else {
            time(&mut state, size[0], size[1]).await?;
        }
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
    print(&state.profile(rows).await?);
    Ok(())
}

/// Conversations that begin with different tokens.
#[expect(clippy::print_stdout, reason = "printing is what this is for")]
async fn decode_together(model: &Rc<GpuModel>, conversations: u32) -> Result<(), Box<dyn std::error::Error>> {
    const TOKENS: usize = 128;
    let mut states = Vec::new();
    for id in 0..conversations {
        let mut state = model.state()?;
        state.begin(&[2, 100 + id], &Sampling::GREEDY, &[2, 100 + id], TOKENS + 40).await?;
        states.push(state);
    }
    let mut started = Instant::now();
    for index in 0..TOKENS + 10 {
        if index == 10 {
            started = Instant::now();
        }
        for state in &mut states {
            state.next_token().await?;
        }
    }
    let each = started.elapsed().as_secs_f64() / TOKENS as f64;
    let rate = f64::from(conversations) / each;
    println!("\n{conversations} conversations: {:.3} ms a step, {rate:.0} tokens a second", 1e3 * each);
    Ok(())
}

async fn profile_together(
    state: &mut GpuState,
    rows: u32,
    position: u32,
) -> Result<(), Box<dyn std::error::Error>> {
    for first in (0..position).step_by(512) {
        state.step(&vec![5; 512.min(position - first) as usize]).await?;
    }
    // Clocks rise slowly.
    for _ in 0..ROUNDS {
        state.profile_together(rows).await?;
    }
    print(&state.profile_together(rows).await?);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "printing is what this is for")]
fn print(report: &PlanReport) {
    let mut kernels: BTreeMap<&str, (u32, f64, u64)> = BTreeMap::new();
    for dispatch in &report.dispatches {
        let entry = kernels.entry(&dispatch.kernel).or_default();
        entry.0 += 1;
        entry.1 += dispatch.seconds.unwrap_or(0.0);
        entry.2 += dispatch.weight_bytes;
    }
    let all: f64 = kernels.values().map(|entry| entry.1).sum();
    let bytes = report.weight_bytes();
    let count = report.dispatches.len();
    println!("{} rows: {count} dispatches, {:.3} ms, {bytes} bytes of weights", report.rows, 1e3 * all);
    let mut kernels: Vec<_> = kernels.into_iter().collect();
    kernels.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
    for (kernel, (count, seconds, bytes)) in kernels {
        let (each, rate) = (1e6 * seconds / f64::from(count), bytes as f64 / seconds / 1e9);
        println!("{:8.1} µs {count:4} × {each:7.2} µs {rate:8.1} GB/s  {kernel}", 1e6 * seconds);
    }
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
