//! How fast the linear on matrix units is beside the tiled one, for the shapes of Gemma 4 E2B, and how far apart the two are.
//!
//! `lab_matrix [rows]`: so many rows (512). One line for each shape and format, with a star at the tiles that are chosen.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program that measures and prints")]

use rullama_gguf::Format;
use rullama_gpu::{Fragment, Gpu, GpuOptions, Kernel, KernelSpec, MatrixTiles, Tiles};
use rullama_gpu_lab::{
    Lab,
    linear::{Product, packed},
};

/// Width, outputs, whether they are pairs.
const SHAPES: [(u32, u32, bool); 9] = [
    (1536, 2560, false),
    (1536, 6144, true),
    (1536, 12288, true),
    (2048, 1536, false),
    (4096, 1536, false),
    (6144, 1536, false),
    (12288, 1536, false),
    (1536, 256, false),
    (1536, 8960, false),
];

fn main() {
    let rows: u32 = std::env::args().nth(1).map_or(512, |rows| rows.parse().unwrap());
    let gpu = pollster::block_on(Gpu::open(&GpuOptions::default())).unwrap();
    let lab = Lab::new(&gpu);
    println!("{} · {rows} rows · matrices {}", gpu.profile().name, gpu.profile().matrices);
    for (width, outputs, paired) in SHAPES {
        for format in [Format::Q4_K, Format::Q6_K] {
            let product = Product { width, outputs, paired, format, experts: None };
            let blocks = blocks(format, (product.weight_rows() * width) as usize);
            let weight = lab.words(&packed(&product.packing(), &blocks));
            let x = lab.floats(&(0..rows * width).map(|i| noise(i) - 0.5).collect::<Vec<_>>());
            let y = lab.zeros(4 * u64::from(rows * outputs));
            let measure = |spec: KernelSpec, grid: [u32; 3]| {
                let buffers = [("weight", &weight), ("x", &x), ("y", &y)];
                let seconds = product.time(&lab, &spec, &buffers, grid, rows).unwrap();
                (seconds, pollster::block_on(lab.read(&y)).unwrap())
            };
            let tiles = Tiles::choose(rows, outputs, paired);
            let tiled = tiles.constants(product.spec(Kernel::LinearTile).with(Fragment::InOrder), width);
            let (seconds, expected) = measure(tiled, tiles.grid(rows, outputs));
            let (micros, rate) = (seconds * 1e6, product.operations(rows) / seconds / 1e12);
            print!("{product:24} tiles {micros:7.1} µs {rate:6.1} TFLOP/s");
            let chosen = MatrixTiles::choose(rows, width, outputs, paired);
            for tiles in MatrixTiles::ALL {
                let spec = tiles.constants(product.spec(Kernel::LinearMatrix), width);
                let (seconds, found) = measure(spec, tiles.grid(rows, outputs, paired));
                let size = expected.iter().map(|value| value.abs()).fold(0.0, f32::max);
                let apart =
                    found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max) / size;
                let star = if chosen == Some(tiles) { "*" } else { " " };
                let (micros, rate) = (seconds * 1e6, product.operations(rows) / seconds / 1e12);
                print!(" | {micros:7.1} µs {rate:6.1} TFLOP/s, {apart:.1e} apart{star}");
            }
            println!();
        }
    }
}

fn noise(index: u32) -> f32 {
    let mixed = index.wrapping_mul(2_654_435_761);
    ((mixed ^ (mixed >> 15)).wrapping_mul(2_246_822_519) >> 8) as f32 / (1 << 24) as f32
}

fn blocks(format: Format, values: usize) -> Vec<u8> {
    let values: Vec<f32> = (0..values as u32).map(|i| noise(i.wrapping_add(77)) - 0.5).collect();
    let mut blocks = vec![0; values.len() / format.block_len() * format.block_bytes()];
    format.encode(&values, &mut blocks).unwrap();
    blocks
}
