//! Times of a model's towers, kernel by kernel: `lab_tower FILE [PATCHES-ACROSS PATCHES-DOWN] [SECONDS]`.

use std::{collections::BTreeMap, rc::Rc, time::Instant};

use rullama_gemma::{AudioConfig, Patches, VisionConfig, audio, vision};
use rullama_gguf::{Model, open_path};
use rullama_gpu::{EncoderOptions, Gpu, GpuEncoder, GpuOptions, GpuWeights};
use rullama_graph::Graph;

/// Runs that are timed.
const ROUNDS: usize = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    pollster::block_on(run())
}

#[expect(clippy::print_stdout, reason = "printing is what this is for")]
async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, columns, rows, seconds] = &arguments[..] else {
        return Err("lab_tower FILE PATCHES-ACROSS PATCHES-DOWN SECONDS".into());
    };
    let (columns, rows): (u32, u32) = (columns.parse()?, rows.parse()?);
    let seconds: f64 = seconds.parse()?;
    let model = Rc::new(open_path(file).await?);
    let gpu = Gpu::open(&GpuOptions::default()).await?;
    println!("{:?}", gpu.profile());
    if let Some(config) = VisionConfig::read(&model).await? {
        let values = noise((columns * rows * config.patch_width()) as usize);
        let inputs = config.inputs(&model, Patches { columns, rows, values: &values }).await?;
        println!("\nan image of {columns} × {rows} patches");
        time(&gpu, &model, vision(&model, &config)?, &inputs.by_name()).await?;
    }
    if let Some(config) = AudioConfig::read(&model).await? {
        let frames = (seconds * if config.tower.is_some() { 100.0 } else { 25.0 }) as usize;
        let inputs = config.inputs(noise(frames * config.frame_width() as usize));
        println!("\n{seconds} seconds of sound");
        time(&gpu, &model, audio(&model, &config)?, &inputs.by_name()).await?;
    }
    Ok(())
}

fn noise(count: usize) -> Vec<f32> {
    (0..count).map(|at| ((at * 7919) % 2003) as f32 / 1001.0 - 1.0).collect()
}

#[expect(clippy::print_stdout, reason = "printing is what this is for")]
async fn time(
    gpu: &Gpu,
    model: &Rc<Model>,
    graph: Graph,
    inputs: &[(&str, &[f32])],
) -> Result<(), Box<dyn std::error::Error>> {
    let weights = GpuWeights::new(gpu.clone(), model.clone());
    let started = Instant::now();
    let encoder = GpuEncoder::load(&weights, graph, EncoderOptions::default(), &mut |_, _| {}).await?;
    println!("loaded in {:.2} s, {} bytes", started.elapsed().as_secs_f64(), encoder.weight_bytes());
    let started = Instant::now();
    encoder.run(inputs, &mut |_, _| {}).await?;
    println!("first run: {:.1} ms", 1e3 * started.elapsed().as_secs_f64());
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let started = Instant::now();
        encoder.run(inputs, &mut |_, _| {}).await?;
        times.push(started.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    println!("median of {ROUNDS} runs: {:.2} ms", 1e3 * times[ROUNDS / 2]);
    encoder.profile(inputs).await?;
    let report = encoder.profile(inputs).await?;
    let mut kernels: BTreeMap<&str, (u32, f64)> = BTreeMap::new();
    for dispatch in &report.dispatches {
        let entry = kernels.entry(&dispatch.kernel).or_default();
        entry.0 += 1;
        entry.1 += dispatch.seconds.unwrap_or(0.0);
    }
    let all: f64 = kernels.values().map(|entry| entry.1).sum();
    println!("{} dispatches, {:.3} ms", report.dispatches.len(), 1e3 * all);
    let mut kernels: Vec<_> = kernels.into_iter().collect();
    kernels.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
    for (kernel, (count, seconds)) in kernels {
        println!(
            "{:8.1} µs {count:4} × {:8.2} µs  {kernel}",
            1e6 * seconds,
            1e6 * seconds / f64::from(count)
        );
    }
    Ok(())
}
