//! Every measured threshold and tile size, with the measurement that gave it.
//!
//! Everything here changes speed and never results. Unless a comment says otherwise the device was an NVIDIA H200 through
//! Vulkan. Two kinds of measurement occur:
//!
//! - *whole model*: tokens a second of E2B in Q4_K_M by `rullama bench`, listed in
//!   `docs/decisions/0006-few-dispatches-and-fixed-point.md`;
//! - *one kernel*: microseconds by an example of `lab` (`cargo run --release -p rullama-gpu-lab --example NAME`).
//!
//! Limits that WebGPU guarantees (256 threads per workgroup, 16 KiB of workgroup memory) are not measured and stay where
//! they are used; the two thread counts below are here because smaller ones are allowed.

use crate::{MatrixTiles, Tiles};

// ---- products of one row or a few (`linear_row`)

/// Threads per workgroup: what WebGPU guarantees. 128 and 512 were slower (whole model, decision 0006).
pub(crate) const ROW_THREADS: u32 = 256;

/// Up to this many rows a product reads each weight once for all rows. Beyond, tiles are faster (whole model: prompts went
/// from 3,200 to 9,400 tokens a second with tiles).
pub(crate) const FEW_ROWS: u32 = 8;

/// Workgroup memory beyond which too few workgroups run at the same time (whole model, decision 0006: staging all 12,288
/// values of a wide input at once was slower).
pub(crate) const MOST_WORKGROUP_MEMORY: u32 = 48 << 10;

/// Chunks of x staged at once, where x need not be staged whole: enough to give each thread several loads in flight (whole
/// model).
pub(crate) const STAGED_CHUNKS: u32 = 128;

/// Split-K: chunks of each split, and threads that share an output, the best first. A split is long enough to be worth
/// staging and no longer, because no split waits for another (whole model: 488 to 514 tokens a second, decision 0006).
pub(crate) const SPLIT_K: [(u32, u32); 3] = [(64, 16), (48, 16), (32, 32)];

/// Split-K: the most partial sums that a consumer of few workgroups adds up, and one of many workgroups. Every workgroup of
/// the consumer reads all of them (whole model, decision 0006).
pub(crate) const NARROW_CONSUMER_SPLITS: u32 = 32;
pub(crate) const WIDE_CONSUMER_SPLITS: u32 = 2;

/// Workgroups of a product that run at the same time on this device: 4 on each of its 132 processors.
pub(crate) const BUSY_WORKGROUPS: u32 = 528;

/// Products of up to this many outputs make only a few workgroups: more threads share an output (whole model: part of 474
/// to 494 tokens a second, decision 0006).
pub(crate) const NARROW_OUTPUTS: u32 = 512;

/// Products of at least this many outputs, the head, run two rounds of workgroups (whole model, decision 0006).
pub(crate) const HEAD_OUTPUTS: u32 = 65_536;

/// Threads that share an output, by the chunks of its row: each thread should have a few chunks, and a workgroup about
/// 16 KiB of weights (whole model).
pub(crate) fn threads_per_output(chunks: u32, outputs: u32) -> u32 {
    match chunks {
        0..=8 => 8,
        _ if outputs <= NARROW_OUTPUTS => 32,
        9..=128 => 16,
        129..=256 => 32,
        _ => 64,
    }
}

/// Chunks that a thread loads at once: more cost registers, and with them workgroups that run at the same time (whole
/// model: three gave part of 514 to 527 tokens a second; two are better where x is staged in many parts).
pub(crate) fn most_unroll(chunks: u32, split_k: bool) -> u32 {
    if chunks > 256 && !split_k { 2 } else { 3 }
}

// ---- products of a few rows (`linear_few`)

/// Threads per workgroup.
pub(crate) const FEW_ROW_THREADS: u32 = 128;

/// Up to this many rows a product that has no experts uses `linear_few`.
pub(crate) const MOST_FEW_ROWS: u32 = 16;

/// Workgroups that keep the device busy, and workgroups beyond which each takes several tiles.
pub(crate) const LEAST_FEW_WORKGROUPS: u32 = 192;
pub(crate) const BUSY_FEW_WORKGROUPS: u32 = 396;

/// The most partial sums that a residual sum adds up.
pub(crate) const MOST_FEW_SPLITS: u32 = 8;

// ---- products of many rows (`linear_tile`)

/// Workgroups that keep the device busy, by tile size (one kernel, `lab_tile`). Those of `WIDE` have only 64 threads.
pub(crate) const BUSY_LARGE_TILES: u32 = 256;
pub(crate) const BUSY_WIDE_TILES: u32 = 768;
pub(crate) const BUSY_NARROW_TILES: u32 = 256;

/// Rows from which the largest tiles are worth it (one kernel, `lab_tile`).
pub(crate) const LARGE_TILE_ROWS: u32 = 128;

/// The most rows for the tiles of fewest rows, and of few (one kernel, `lab_tile`).
pub(crate) const FEWEST_TILE_ROWS: u32 = 16;
pub(crate) const FEW_TILE_ROWS: u32 = 32;

/// Tiles by the rows that an expert has on average, from two thirds to four thirds of a tile's rows: larger tiles are mostly
/// empty, smaller ones decode each weight several times (one kernel, `lab_experts`).
pub(crate) fn expert_tiles(rows_per_expert: u32) -> Tiles {
    match rows_per_expert {
        0..=12 => Tiles::FLATTEST,
        13..=24 => Tiles::FLATTER,
        25..=48 => Tiles::FLAT,
        _ => Tiles::WIDE,
    }
}

impl Tiles {
    /// 128 × 128, 256 threads: fewest reads from memory for each product.
    pub const LARGE: Self = Self::new([128, 128], [8, 8], 1, 16);
    /// 64 × 64, 64 threads: as many products for each read from workgroup memory, and four times the workgroups.
    pub const WIDE: Self = Self::new([64, 64], [8, 8], 1, 16);
    /// 64 × 32 with the width shared by four: as `WIDE`, with twice the workgroups and four times the threads.
    pub const NARROW: Self = Self::new([64, 32], [8, 8], 4, 32);
    /// 32 × 32 with the width shared by four: for so few outputs that `NARROW` would leave processors idle.
    pub const SMALL: Self = Self::new([32, 32], [4, 4], 4, 64);
    /// 32 × 16 with the width shared by eight: for few rows, where the outputs alone must fill the GPU.
    pub const FEW: Self = Self::new([32, 16], [4, 4], 8, 64);
    /// 16 × 16 with the width shared by sixteen: for half as many rows.
    pub const FEWEST: Self = Self::new([16, 16], [4, 4], 16, 64);
    /// 32 × 64 with the width shared by four: for experts of about that many rows.
    pub const FLAT: Self = Self::new([32, 64], [8, 8], 4, 32);
    /// 16 × 64, likewise.
    pub const FLATTER: Self = Self::new([16, 64], [4, 8], 4, 32);
    /// 8 × 64, likewise: the fewest rows that threads can share.
    pub const FLATTEST: Self = Self::new([8, 64], [4, 8], 4, 32);
}

// ---- products of many rows on matrix units (`linear_matrix`), all by `lab_matrix`: `docs/decisions/0008-matrix-units.md`

impl MatrixTiles {
    /// 64 × 128, the width shared by two.
    pub const WIDE: Self = Self { grid_rows: 2, grid_columns: 2, pieces: 4, parts: 2, depth: 64 };
    /// 32 × 64, the width shared by four: for so few rows and outputs that the other would leave processors idle.
    pub const SMALL: Self = Self { grid_rows: 1, grid_columns: 2, pieces: 2, parts: 4, depth: 128 };
}

/// Workgroups below which other tiles keep the device busier.
pub(crate) const BUSY_MATRIX_TILES: u32 = 48;

/// Rows from which matrix units are used: shorter prompts are read fast enough in single precision.
pub(crate) const MATRIX_ROWS: u32 = 65;

/// The narrowest input for matrix units: below, there is little to gain.
pub(crate) const MATRIX_WIDTH: u32 = 1024;

// ---- attention

/// Splits of one row's context: keys that are worth a workgroup of their own, and the most workgroups. With a sliding window
/// the next product can merge the splits (one kernel, `lab_attention`).
pub(crate) const SLIDING_SPLITS: (u32, u32) = (64, 8);
pub(crate) const GLOBAL_SPLITS: (u32, u32) = (32, 64);

/// The most splits that the next product merges in its prologue, where every workgroup repeats the merge. More are merged by
/// a dispatch of their own (whole model, decision 0006).
pub(crate) const PROLOGUE_SPLITS: u32 = 8;

/// Threads that norm one head together, in steps of several rows (one kernel, `lab_attention`). A head of 256 has as many
/// groups of four columns in each half.
pub(crate) const HEAD_THREADS: u32 = 32;

/// Threads that share the splits of four columns when these are merged (one kernel, `lab_attention`).
pub(crate) const MERGE_SLICES: u32 = 8;

// ---- steps

/// The most rows of a step, while a prompt is read (whole model).
pub(crate) const MOST_ROWS: u32 = 512;

/// Steps of more than [`FEW_ROWS`] and up to this many rows have a plan of their own, with smaller tiles (whole model).
pub(crate) const SMALL_CHUNK: u32 = 64;

// ---- sampling

/// Tokens of which each thread of `maxima` finds the best: fewer make more maxima, more make more candidates to gather
/// (one kernel, `lab_sample`).
pub(crate) const MAXIMA_DEPTH: u32 = 64;
