//! How fast the tiled linear is, for the shapes of Gemma 4 E2B and for several ways to cut them into tiles.
//!
//! `lab_tile [rows [filter]]`: so many rows (512), and only lines that contain the filter. One line for each shape,
//! format and tiling: microseconds, TFLOP/s, and a star at the one that `Tiles::choose` takes; then the best of them.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program that measures and prints")]

use rullama_gguf::Format;
use rullama_gpu::{Fragment, Gpu, GpuOptions, Kernel, Tiles};
use rullama_gpu_lab::{
    Lab,
    linear::{Product, describe},
};

/// Width, outputs, whether they are pairs, format.
const SHAPES: [(u32, u32, bool, Format); 20] = [
    (1536, 2560, false, Format::Q4_K),
    (1536, 2560, false, Format::Q6_K),
    (1536, 6144, true, Format::Q4_K),
    (1536, 6144, true, Format::Q6_K),
    (1536, 12288, true, Format::Q4_K),
    (1536, 12288, true, Format::Q6_K),
    (2048, 1536, false, Format::Q4_K),
    (2048, 1536, false, Format::Q6_K),
    (4096, 1536, false, Format::Q4_K),
    (4096, 1536, false, Format::Q6_K),
    (6144, 1536, false, Format::Q4_K),
    (6144, 1536, false, Format::Q6_K),
    (12288, 1536, false, Format::Q4_K),
    (12288, 1536, false, Format::Q6_K),
    (1536, 256, false, Format::Q4_K),
    (1536, 256, false, Format::Q6_K),
    (256, 1536, false, Format::Q4_K),
    (256, 1536, false, Format::Q6_K),
    (1536, 8960, false, Format::Q4_K),
    (1536, 8960, false, Format::BF16),
];

/// The tilings to compare, of a weight that is not in pairs; for pairs, half as many outputs.
fn variants() -> Vec<Tiles> {
    let wide = Tiles::WIDE;
    let narrow = Tiles::NARROW;
    let small = Tiles::SMALL;
    vec![
        Tiles::LARGE,
        Tiles { ahead: false, ..Tiles::LARGE },
        Tiles { rows: 128, ..wide },
        Tiles { rows: 128, ahead: false, ..wide },
        Tiles { rows: 128, parts: 2, ..wide },
        wide,
        Tiles { ahead: false, ..wide },
        Tiles { unroll: 2, ..wide },
        Tiles { depth: 32, ..wide },
        Tiles { depth: 32, ahead: false, ..wide },
        Tiles { depth: 32, parts: 2, ..wide },
        Tiles { depth: 32, parts: 2, ahead: false, ..wide },
        Tiles { depth: 32, parts: 4, ..wide },
        Tiles { depth: 32, lane_rows: 4, parts: 2, ..wide },
        Tiles { depth: 32, lane_rows: 4, ..wide },
        narrow,
        Tiles { ahead: false, ..narrow },
        Tiles { unroll: 2, ..narrow },
        Tiles { parts: 8, ..narrow },
        Tiles { parts: 2, ..narrow },
        Tiles { rows: 32, outputs: 64, ..narrow },
        Tiles { rows: 32, outputs: 64, lane_rows: 4, parts: 2, ..narrow },
        Tiles { rows: 32, outputs: 64, lane_rows: 4, parts: 4, ..narrow },
        small,
        Tiles { unroll: 4, ..small },
        Tiles { ahead: false, ..small },
        Tiles { lane_rows: 8, lane_columns: 8, parts: 8, ..small },
        Tiles { depth: 32, parts: 2, ..small },
        Tiles::FEW,
        Tiles::FEWEST,
        Tiles { unroll: 2, ..Tiles::FEW },
    ]
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let rows: u32 = arguments.next().map_or(512, |rows| rows.parse().unwrap());
    let filter = arguments.next().unwrap_or_default();
    let gpu = pollster::block_on(Gpu::open(&GpuOptions::default())).unwrap();
    let lab = Lab::new(&gpu);
    println!("{} · {rows} rows", gpu.profile().name);

    for (width, outputs, paired, format) in SHAPES {
        let product = Product { width, outputs, paired, format, experts: None };
        let weight = lab.words(&product.random_weight());
        let x = lab.floats(&(0..rows * width).map(|i| (i % 97) as f32 * 0.01 - 0.5).collect::<Vec<_>>());
        let y = lab.zeros(4 * u64::from(rows * outputs));
        let buffers = [("weight", &weight), ("x", &x), ("y", &y)];

        let chosen = Tiles::choose(rows, outputs, paired);
        let mut best = (f64::MAX, String::new());
        for tiles in variants() {
            let tiles = if paired { tiles.paired() } else { tiles };
            let line = format!("{product:24} {}", describe(&tiles, paired));
            if !line.contains(&filter) || tiles.lanes(paired) > 256 {
                continue;
            }
            let spec =
                tiles.constants(product.spec(Kernel::LinearTile).with(Fragment::InOrder), product.width);
            let grid = tiles.grid(rows, outputs);
            let seconds = product.time(&lab, &spec, &buffers, grid, rows).unwrap();
            let star = if tiles == chosen { "*" } else { "" };
            let [columns, bands, _] = grid;
            let workgroups = columns * bands;
            let (micros, rate) = (seconds * 1e6, product.operations(rows) / seconds / 1e12);
            let line = format!("{line} {workgroups:5} workgroups {micros:9.1} µs {rate:6.2} TFLOP/s {star}");
            println!("{line}");
            if seconds < best.0 {
                best = (seconds, line);
            }
        }
        if !best.1.is_empty() {
            println!("best: {}", best.1);
        }
    }
}
