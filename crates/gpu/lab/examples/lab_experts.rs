//! How fast the tiled linear of experts is, for the shapes of Gemma 4 26B-A4B and for several ways to cut them into tiles.
//!
//! `lab_experts [rows [filter]]`: so many rows (512), and only lines that contain the filter. One line for each shape,
//! format and tiling: tiles that have an expert and the room for them, microseconds, TFLOP/s of what is wanted (what empty
//! places of tiles compute does not count), and a star at the one that `Tiles::for_experts` takes. Rows choose their
//! experts at random. What it takes to group them comes first.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program that measures and prints")]

use rullama_gguf::Format;
use rullama_gpu::{Experts, Fragment, Gpu, GpuOptions, Kernel, Tiles, params::GroupRowsParams};
use rullama_gpu_lab::{
    Lab, Step,
    linear::{Product, Random, describe},
};

const EXPERTS: Experts = Experts { count: 128, used: 8 };

/// Width, outputs, whether they are pairs, format. The input of pairs is shared by a row's experts.
const SHAPES: [(u32, u32, bool, Format); 4] = [
    (2816, 704, true, Format::Q4_K),
    (2816, 704, true, Format::Q8_0),
    (704, 2816, false, Format::Q8_0),
    (704, 2816, false, Format::Q5_0),
];

/// The tilings to compare, of a weight that is not in pairs; for pairs, half as many outputs.
fn variants() -> Vec<Tiles> {
    let (wide, flat, flatter, flattest) = (Tiles::WIDE, Tiles::FLAT, Tiles::FLATTER, Tiles::FLATTEST);
    vec![
        wide,
        Tiles { parts: 2, ..wide },
        Tiles { ahead: false, ..wide },
        flat,
        Tiles { ahead: false, ..flat },
        Tiles { unroll: 2, ..flat },
        Tiles { parts: 2, ..flat },
        Tiles { parts: 2, depth: 16, ..flat },
        Tiles { parts: 1, depth: 16, ..flat },
        Tiles { lane_rows: 4, parts: 2, ..flat },
        flatter,
        Tiles { ahead: false, ..flatter },
        Tiles { parts: 2, ..flatter },
        Tiles { parts: 2, depth: 16, ..flatter },
        flattest,
        Tiles { ahead: false, ..flattest },
        Tiles { parts: 2, depth: 16, ..flattest },
    ]
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let rows: u32 = arguments.next().map_or(512, |rows| rows.parse().unwrap());
    let filter = arguments.next().unwrap_or_default();
    let gpu = pollster::block_on(Gpu::open(&GpuOptions::default())).unwrap();
    let lab = Lab::new(&gpu);
    println!("{} · {rows} rows, {} of {} experts each", gpu.profile().name, EXPERTS.used, EXPERTS.count);
    let routing = lab.floats(&routing(rows));
    let group = |tile_rows| {
        let tiles = EXPERTS.tiles(rows, tile_rows);
        let groups = lab.zeros(4 * u64::from(Experts::words(tiles, tile_rows)));
        let buffers = [("routing", &routing), ("groups", &groups)];
        let spec = EXPERTS.group_rows(tile_rows);
        let params = GroupRowsParams { tiles };
        (lab.prepare(&spec, &[params.into()], &buffers, [EXPERTS.count, 1, 1]), groups)
    };
    let step = Step::new(rows, 0);
    for tile_rows in [8, 16, 32, 64] {
        let kernels: Vec<_> = (0..40).map(|_| group(tile_rows).0).collect();
        let seconds = lab.time(&kernels, &step, 10).unwrap() / kernels.len() as f64;
        println!("rows by expert, in tiles of {tile_rows:2}: {:.1} µs", seconds * 1e6);
    }

    for (width, outputs, paired, format) in SHAPES {
        let product = Product { width, outputs, paired, format, experts: Some(EXPERTS) };
        let weight = lab.words(&product.random_weight());
        let values = rows * product.x_width();
        let x = lab.floats(&(0..values).map(|i| (i % 97) as f32 * 0.01 - 0.5).collect::<Vec<_>>());
        let y = lab.zeros(4 * u64::from(rows * product.y_width()));

        let chosen = Tiles::for_experts(EXPERTS, rows, paired);
        for tiles in variants() {
            let tiles = if paired { tiles.paired() } else { tiles };
            let line = format!("{product:22} {}", describe(&tiles, paired));
            if !line.contains(&filter) {
                continue;
            }
            let spec =
                tiles.constants(product.spec(Kernel::LinearTile).with(Fragment::Grouped), product.width);
            let (grouping, groups) = group(tiles.rows);
            lab.run(&[grouping], &step);
            let most = EXPERTS.tiles(rows, tiles.rows);
            let words = pollster::block_on(lab.read(&groups)).unwrap();
            let experts = words.chunks(1 + tiles.rows as usize).map(|tile| tile[0].to_bits());
            let full = experts.filter(|&expert| expert != u32::MAX).count();
            let [columns, ..] = tiles.grid(rows, outputs);
            let buffers = [("weight", &weight), ("x", &x), ("y", &y), ("groups", &groups)];
            let seconds = product.time(&lab, &spec, &buffers, [columns, most, 1], rows).unwrap();
            let star = if tiles == chosen { "*" } else { "" };
            let (micros, rate) = (seconds * 1e6, product.operations(rows) / seconds / 1e12);
            println!("{line} {full:4} of {most:4} tiles {micros:9.1} µs {rate:6.2} TFLOP/s {star}");
        }
    }
}

/// Different experts for each row, and their weights.
fn routing(rows: u32) -> Vec<f32> {
    let mut random = Random(1);
    let mut routing = Vec::new();
    for _ in 0..rows {
        let mut chosen: Vec<u32> = Vec::new();
        while chosen.len() < EXPERTS.used as usize {
            let expert = random.bits() % EXPERTS.count;
            if !chosen.contains(&expert) {
                chosen.push(expert);
            }
        }
        routing.extend(chosen.iter().map(|&expert| expert as f32));
        routing.extend(chosen.iter().map(|_| 1.0 / EXPERTS.used as f32));
    }
    routing
}
