//! How fast the tiled linear of experts is, for the shapes of Gemma 4 26B-A4B and for several ways to cut them into tiles.
//!
//! `lab_experts [rows [filter]]`: so many rows (512), and only lines that contain the filter. One line for each shape,
//! format and tiling: tiles that have an expert and the room for them, microseconds, TFLOP/s of what is wanted (what empty
//! places of tiles compute does not count), and a star at the one that `Tiles::for_experts` takes. Rows choose their
//! experts at random. What it takes to group them comes first.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program that measures and prints")]

use rullama_gguf::Format;
use rullama_gpu::{
    Experts, Fragment, Gpu, GpuOptions, Kernel, KernelSpec, Tiles,
    lab::{Lab, Step},
    params::{GroupRowsParams, LinearParams},
    weights::pack::Packing,
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
        let times = if paired { "2 × " } else { "" };
        let shape = format!("{width} → {times}{outputs} {format}");
        let packing = Packing::new(format, width).unwrap();
        let pair = if paired { outputs } else { 0 };
        let matrix = outputs + pair;
        let weights = matrix * EXPERTS.count;
        let [a, b, c, words] = packing.plane_starts(weights.into());
        let weight = lab.words(&random_words(words as usize));
        let x_slot = if paired { 0 } else { width };
        let x_stride = if paired { width } else { width * EXPERTS.used };
        let x = lab.floats(&(0..rows * x_stride).map(|i| (i % 97) as f32 * 0.01 - 0.5).collect::<Vec<_>>());
        let y_stride = outputs * EXPERTS.used;
        let y = lab.zeros(4 * u64::from(rows * y_stride));
        let [d, e, f] = packing.plane_words;
        let params = LinearParams {
            plane_at: [a as u32, b as u32, c as u32, 0],
            plane_words: [d, e, f, 0],
            width,
            outputs,
            first_row: 0,
            matrix_rows: matrix,
            shard_first: 0,
            shard_rows: weights,
            pair,
            x_at: 0,
            x_stride,
            x_slot,
            y_at: 0,
            y_stride,
            routing_width: 2 * EXPERTS.used,
            other_at: 0,
            other_stride: 0,
            factor: 1.0,
            cap: 1.0,
        };

        let chosen = Tiles::for_experts(EXPERTS, rows, paired);
        let work = 2.0 * f64::from(rows * EXPERTS.used) * f64::from(width) * f64::from(matrix);
        for tiles in variants() {
            let tiles = if paired { tiles.paired() } else { tiles };
            let line = format!("{shape:22} {}", describe(&tiles, paired));
            if !line.contains(&filter) {
                continue;
            }
            let epilogue = if paired { Fragment::GeluPair } else { Fragment::Store };
            let spec = KernelSpec::new(Kernel::LinearTile)
                .with(Fragment::LinearParams)
                .with(Fragment::Planes)
                .with(Fragment::Gelu)
                .with(Fragment::format(format).unwrap())
                .with(Fragment::Grouped)
                .with(epilogue);
            let spec = tiles.constants(spec);
            let (grouping, groups) = group(tiles.rows);
            lab.run(&[grouping], &step);
            let most = EXPERTS.tiles(rows, tiles.rows);
            let words = pollster::block_on(lab.read(&groups)).unwrap();
            let experts = words.chunks(1 + tiles.rows as usize).map(|tile| tile[0].to_bits());
            let full = experts.filter(|&expert| expert != u32::MAX).count();
            let [columns, ..] = tiles.grid(rows, outputs);
            let buffers = [("weight", &weight), ("x", &x), ("y", &y), ("groups", &groups)];
            let again = (2e10 / work).clamp(1.0, 40.0) as usize;
            let kernels: Vec<_> = (0..again)
                .map(|_| lab.prepare(&spec, &[params.into()], &buffers, [columns, most, 1]))
                .collect();
            let seconds = lab.time(&kernels, &step, 10).unwrap() / again as f64;
            let star = if tiles == chosen { "*" } else { "" };
            let (micros, rate) = (seconds * 1e6, work / seconds / 1e12);
            println!("{line} {full:4} of {most:4} tiles {micros:9.1} µs {rate:6.2} TFLOP/s {star}");
        }
    }
}

fn describe(tiles: &Tiles, paired: bool) -> String {
    let Tiles { rows, outputs, lane_rows, lane_columns, parts, depth, unroll, ahead } = tiles;
    let lanes = tiles.lanes(paired);
    let ahead = if *ahead { "ahead" } else { "     " };
    format!(
        "{rows:3}×{outputs:<3} lane {lane_rows}×{lane_columns} parts {parts} depth {depth} unroll {unroll} \
         {ahead} {lanes:3} lanes"
    )
}

fn random(state: &mut u32) -> u32 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    *state >> 8
}

/// Different experts for each row, and their weights.
fn routing(rows: u32) -> Vec<f32> {
    let mut state = 1;
    let mut routing = Vec::new();
    for _ in 0..rows {
        let mut chosen: Vec<u32> = Vec::new();
        while chosen.len() < EXPERTS.used as usize {
            let expert = random(&mut state) % EXPERTS.count;
            if !chosen.contains(&expert) {
                chosen.push(expert);
            }
        }
        routing.extend(chosen.iter().map(|&expert| expert as f32));
        routing.extend(chosen.iter().map(|_| 1.0 / EXPERTS.used as f32));
    }
    routing
}

/// Words that are small finite numbers as whole, half and quarter words, whatever they stand for: the highest bit of
/// each half's exponent is clear, so none is an infinity or NaN, nor very large.
fn random_words(count: usize) -> Vec<u32> {
    let mut state = 1;
    (0..count).map(|_| (random(&mut state) ^ random(&mut state) << 16) & 0xbfff_bfff).collect()
}
