//! How fast the tiled linear is, for the shapes of Gemma 4 E2B and for several ways to cut them into tiles.
//!
//! `lab_tile [rows [filter]]`: so many rows (512), and only lines that contain the filter. One line for each shape,
//! format and tiling: microseconds, TFLOP/s, and a star at the one that `Tiles::choose` takes; then the best of them.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program that measures and prints")]

use rullama_gguf::Format;
use rullama_gpu::{
    Fragment, Gpu, GpuOptions, Kernel, KernelSpec, Tiles,
    lab::{Lab, Step},
    params::LinearParams,
    weights::pack::Packing,
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
        let times = if paired { "2 × " } else { "" };
        let shape = format!("{width} → {times}{outputs} {format}");
        let packing = Packing::new(format, width).unwrap();
        let pair = if paired { outputs } else { 0 };
        let weights = outputs + pair;
        let [a, b, c, words] = packing.plane_starts(weights.into());
        let weight = lab.words(&random_words(words as usize));
        let x = lab.floats(&(0..rows * width).map(|i| (i % 97) as f32 * 0.01 - 0.5).collect::<Vec<_>>());
        let y = lab.zeros(4 * u64::from(rows * outputs));
        let [d, e, f] = packing.plane_words;
        let params = LinearParams {
            plane_at: [a as u32, b as u32, c as u32, 0],
            plane_words: [d, e, f, 0],
            width,
            outputs,
            first_row: 0,
            matrix_rows: weights,
            shard_first: 0,
            shard_rows: weights,
            pair,
            x_at: 0,
            x_stride: width,
            x_slot: 0,
            y_at: 0,
            y_stride: outputs,
            routing_width: 0,
            other_at: 0,
            other_stride: outputs,
            factor: 1.0,
            cap: 1.0,
        };

        let chosen = Tiles::choose(rows, outputs, paired);
        let work = 2.0 * f64::from(rows) * f64::from(width) * f64::from(weights);
        let mut best = (f64::MAX, String::new());
        for tiles in variants() {
            let tiles = if paired { tiles.paired() } else { tiles };
            let line = format!("{shape:24} {}", describe(&tiles, paired));
            if !line.contains(&filter) || tiles.lanes(paired) > 256 {
                continue;
            }
            let epilogue = if paired { Fragment::GeluPair } else { Fragment::Store };
            let spec = KernelSpec::new(Kernel::LinearTile)
                .with(Fragment::LinearParams)
                .with(Fragment::Planes)
                .with(Fragment::Gelu)
                .with(Fragment::format(format).unwrap())
                .with(Fragment::InOrder)
                .with(epilogue);
            let spec = tiles.constants(spec);
            let grid = tiles.grid(rows, outputs);
            let buffers = [("weight", &weight), ("x", &x), ("y", &y)];
            // Many in each submission, which has a cost of its own.
            let again = (2e10 / work).clamp(1.0, 40.0) as usize;
            let kernels: Vec<_> =
                (0..again).map(|_| lab.prepare(&spec, &[params.into()], &buffers, grid)).collect();
            let seconds = lab.time(&kernels, &Step::new(rows, 0), 10).unwrap() / again as f64;
            let star = if tiles == chosen { "*" } else { "" };
            let [columns, bands, _] = grid;
            let workgroups = columns * bands;
            let (micros, rate) = (seconds * 1e6, work / seconds / 1e12);
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

fn describe(tiles: &Tiles, paired: bool) -> String {
    let Tiles { rows, outputs, lane_rows, lane_columns, parts, depth, unroll, ahead } = tiles;
    let lanes = tiles.lanes(paired);
    let ahead = if *ahead { "ahead" } else { "     " };
    format!(
        "{rows:3}×{outputs:<3} lane {lane_rows}×{lane_columns} parts {parts:2} depth {depth} unroll {unroll} \
         {ahead} {lanes:3} lanes"
    )
}

/// Words that are small finite numbers as whole, half and quarter words, whatever they stand for.
fn random_words(count: usize) -> Vec<u32> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // The highest bit of each half's exponent is clear, so none is an infinity or NaN, nor very large.
        state & 0xbfff_bfff
    };
    (0..count).map(|_| next()).collect()
}
