//! How fast products of few rows are, for the shapes of Gemma 4 E2B, and how exact.
//!
//! `lab_few [rows]…`: so many rows (8). One line for each shape, format and tiles.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program that measures and prints")]

use std::time::Instant;

use rullama_gguf::Format;
use rullama_gpu::{FewTiles, Fragment, Gpu, GpuOptions, Kernel, Tiles};
use rullama_gpu_lab::{
    Lab, Step,
    linear::{Product, packed},
};

/// Width, outputs, whether they are pairs, formats, the most partial sums.
const SHAPES: [(u32, u32, bool, &[Format], u32); 8] = [
    (1536, 12288, true, &[Format::Q4_K], 1),
    (12288, 1536, false, &[Format::Q4_K, Format::Q6_K], 8),
    (1536, 6144, true, &[Format::Q4_K], 1),
    (6144, 1536, false, &[Format::Q6_K], 8),
    (1536, 2560, false, &[Format::Q4_K], 1),
    (2048, 1536, false, &[Format::Q4_K], 8),
    (4096, 1536, false, &[Format::Q4_K], 8),
    (1536, 262_144, false, &[Format::Q6_K], 1),
];

/// Bytes of weights in turns, so that none is in a cache.
const BYTES: u64 = 300 << 20;

fn main() {
    let mut rows: Vec<u32> = std::env::args().skip(1).map(|rows| rows.parse().unwrap()).collect();
    if rows.is_empty() {
        rows.push(8);
    }
    let gpu = pollster::block_on(Gpu::open(&GpuOptions::default())).unwrap();
    println!("{:?}", gpu.profile());
    for (width, outputs, paired, formats, most_splits) in SHAPES {
        for &format in formats {
            for &rows in &rows {
                measure(&gpu, Product { width, outputs, paired, format, experts: None }, rows, most_splits);
            }
        }
    }
}

fn measure(gpu: &Gpu, product: Product, rows: u32, most_splits: u32) {
    let lab = Lab::new(gpu);
    let Product { width, outputs, paired, format, .. } = product;
    let blocks = blocks(format, (product.weight_rows() * width) as usize);
    let words = packed(&product.packing(), &blocks);
    let bytes = 4 * words.len() as u64;
    let copies = BYTES.div_ceil(bytes).clamp(2, 64);
    let weights: Vec<_> = (0..copies).map(|_| lab.words(&words)).collect();
    let x = lab.floats(&(0..rows * width).map(|i| noise(i) - 0.5).collect::<Vec<_>>());
    let y = lab.zeros(4 * u64::from(rows * outputs * 16));
    let params = product.params();
    let read = || pollster::block_on(lab.read(&y)).unwrap();
    let tiles = Tiles::choose(rows, outputs, paired);
    let tiled = tiles.constants(product.spec(Kernel::LinearTile).with(Fragment::InOrder), product.width);
    let buffers = [("weight", &weights[0]), ("x", &x), ("y", &y)];
    lab.run(
        &[lab.prepare(&tiled, &[params.into()], &buffers, tiles.grid(rows, outputs))],
        &Step::new(rows, 0),
    );
    let expected = read();
    let size = expected.iter().map(|value| value.abs()).fold(0.0, f32::max);
    let mut results = Vec::new();
    let mut tried = candidates(width / 32, outputs, paired, most_splits);
    tried.retain(|few| few.workgroup_memory(rows) <= gpu.profile().workgroup_memory);
    let kernel = |few: &FewTiles| few.complete(product.spec(Kernel::LinearFew), rows, 32);
    // Clocks rise slowly.
    let tiled: Vec<_> = weights
        .iter()
        .map(|weight| {
            let buffers = [("weight", weight), ("x", &x), ("y", &y)];
            lab.prepare(&tiled, &[params.into()], &buffers, tiles.grid(rows, outputs))
        })
        .collect();
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < 0.4 {
        lab.time(&tiled, &Step::new(rows, 0), 1).unwrap();
    }
    for few in tried {
        let splits = few.partial_sums();
        let spec = kernel(&few);
        let params = rullama_gpu::params::LinearParams { y_stride: outputs * splits, ..params };
        let kernels: Vec<_> = weights
            .iter()
            .map(|weight| {
                let buffers = [("weight", weight), ("x", &x), ("y", &y)];
                lab.prepare(&spec, &[params.into()], &buffers, few.grid(rows, outputs, paired))
            })
            .collect();
        lab.run(&kernels[..1], &Step::new(rows, 0));
        let found = read();
        let mut apart = 0.0f32;
        for row in 0..rows {
            for output in 0..outputs {
                let at = |split| (row * outputs * splits + split * outputs + output) as usize;
                let sum: f32 = (0..splits).map(|split| found[at(split)]).sum();
                apart = apart.max((sum - expected[(row * outputs + output) as usize]).abs());
                if sum.is_nan() {
                    apart = f32::INFINITY;
                }
            }
        }
        // Enough rounds for two milliseconds of work at the bandwidth of a large GPU.
        let rounds = (30_000_000_000 / (copies * bytes)).clamp(1, 8) as u32;
        let seconds = lab.time(&kernels, &Step::new(rows, 0), rounds).unwrap() / copies as f64;
        results.push((seconds, few, apart / size));
    }
    results.sort_by(|a, b| a.0.total_cmp(&b.0));
    println!("\n{product} · {rows} rows · {:.1} MB", bytes as f64 / 1e6);
    for (seconds, few, apart) in results.iter().take(12) {
        let FewTiles { lanes, parts, together, span, piece, .. } = few;
        println!(
            "{:7.2} µs {:6.0} GB/s  {apart:.1e} apart  lanes {lanes} parts {parts} together {together} span {span} piece {piece} groups {}",
            seconds * 1e6,
            bytes as f64 / seconds / 1e9,
            few.workgroups(outputs, paired),
        );
    }
    if let Some(worst) = results.iter().map(|result| result.2).max_by(f32::total_cmp) {
        println!(
            "   {} tiles, at most {worst:.1e} apart, slowest {:.2} µs",
            results.len(),
            1e6 * results[results.len() - 1].0
        );
    }
}

/// Tiles worth a try.
fn candidates(chunks: u32, outputs: u32, paired: bool, most_splits: u32) -> Vec<FewTiles> {
    let mut found = Vec::new();
    let shapes = [
        [256, 8, 4],
        [128, 8, 4],
        [64, 8, 4],
        [256, 16, 4],
        [128, 16, 4],
        [128, 8, 2],
        [256, 16, 2],
        [128, 16, 2],
        [64, 8, 2],
        [128, 32, 2],
        [64, 16, 2],
        [256, 4, 4],
        [128, 4, 4],
    ];
    for [lanes, parts, together] in shapes {
        for piece in [8, 16, 24, 32] {
            for splits in [1, 2, 4, 8].into_iter().filter(|&splits| splits <= most_splits) {
                let span = chunks / splits;
                let few = FewTiles { lanes, parts, together, chunks, span, piece };
                let fits = chunks.is_multiple_of(splits)
                    && span.is_multiple_of(piece)
                    && piece.is_multiple_of(parts);
                let groups = few.workgroups(outputs, paired);
                if fits && groups >= 90 && (groups <= 1000 || outputs > 100_000) {
                    found.push(few);
                }
            }
        }
    }
    found
}

fn noise(index: u32) -> f32 {
    let mixed = index.wrapping_mul(2_654_435_761);
    ((mixed ^ (mixed >> 15)).wrapping_mul(2_246_822_519) >> 8) as f32 / (1 << 24) as f32
}

fn blocks(format: Format, values: usize) -> Vec<u8> {
    // Noise repeats after some millions of values, which takes less time to encode.
    let period = values.min(6 << 20);
    let values_of_period: Vec<f32> = (0..period as u32).map(|i| noise(i.wrapping_add(77)) - 0.5).collect();
    let mut blocks = vec![0; period / format.block_len() * format.block_bytes()];
    format.encode(&values_of_period, &mut blocks).unwrap();
    blocks.iter().copied().cycle().take(values / format.block_len() * format.block_bytes()).collect()
}
