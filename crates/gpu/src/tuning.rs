//! Every threshold and tile size that decides how fast a model runs or loads, with the measurement that gave it.
//!
//! These numbers change speed and memory. They change results only by rounding: sums are added in another order, and
//! products on matrix units are in half precision (`docs/decisions/0008-matrix-units.md`). Unless a comment says otherwise
//! the device was an NVIDIA H200 through Vulkan. A comment names one of these sources:
//!
//! - *whole model*: tokens per second of E2B in Q4_K_M by `rullama bench`. Figures are in
//!   `docs/decisions/0006-few-dispatches-and-fixed-point.md`;
//! - *one kernel*: microseconds by an example of `lab` (`cargo run --release -p rullama-gpu-lab --example NAME`). Unless the
//!   comment gives figures, none were recorded: run the example again before changing the number;
//! - *not measured*, with the reason for the choice.
//!
//! Limits that WebGPU guarantees (256 threads per workgroup, 16 KiB of workgroup memory) and numbers that the text of a
//! kernel fixes are not choices, and stay where they are used.

use crate::{MatrixTiles, Tiles};

// ---- products of one row or a few (`linear_row`)

/// Threads per workgroup. 256 is what WebGPU guarantees; 128 and 512 were not faster (whole model, decision 0006).
pub(crate) const ROW_THREADS: u32 = 256;

/// Products of up to this many rows use `linear_row`, which reads each weight once for all rows; larger ones use tiles.
/// Tiles took prompts from 3,200 to 9,400 tokens per second (whole model, 512 rows). No figure was recorded for other
/// numbers; each number of rows up to this one has a plan of its own.
pub(crate) const FEW_ROWS: u32 = 8;

/// Bytes of workgroup memory beyond which too few workgroups run at the same time: staging all 12,288 values of a wide input
/// at once was slower (whole model, decision 0006).
pub(crate) const MOST_WORKGROUP_MEMORY: u32 = 48 << 10;

/// The most chunks of x that are staged at a time, if no prologue needs all of x: with 16 threads per output, eight for each,
/// so that several loads are in flight (whole model; no figure was recorded).
pub(crate) const STAGED_CHUNKS: u32 = 128;

/// x is divided into at most this many pieces of equal size. Not measured: a product of the released models needs at most six
/// pieces of [`STAGED_CHUNKS`].
pub(crate) const MOST_PIECES_OF_X: u32 = 8;

/// The fewest threads that share an output. Not measured: more outputs per workgroup would need more workgroup memory for
/// their sums.
pub(crate) const FEWEST_THREADS_PER_OUTPUT: u32 = 4;

/// Split-K: chunks of each split and threads that share an output, the preferred pair first. Splits are short, because no
/// split waits for another, but long enough to be worth staging (whole model, decision 0006: from 488 to 514 tokens per
/// second).
pub(crate) const SPLIT_K: [(u32, u32); 3] = [(64, 16), (48, 16), (32, 32)];

/// Split-K: the most partial sums that a consumer with few workgroups adds, and one with many. Every workgroup of the
/// consumer reads all of them. 32 came with split-K; two, for attention's projection, with other changes took the model from
/// 514 to 527 tokens per second (whole model, decision 0006).
pub(crate) const NARROW_CONSUMER_SPLITS: u32 = 32;
pub(crate) const WIDE_CONSUMER_SPLITS: u32 = 2;

/// Workgroups of a product that run at the same time. Derived, not measured: four on each of the 132 processors of an H200.
const BUSY_WORKGROUPS: u32 = 528;

/// Products of up to this many outputs make only a few workgroups: more threads share an output (whole model, decision 0006:
/// with other changes from 474 to 494 tokens per second).
pub(crate) const NARROW_OUTPUTS: u32 = 512;

/// Products of at least this many outputs are the head.
const HEAD_OUTPUTS: u32 = 65_536;

/// The most workgroups of a product that stages all of x at once. Each workgroup computes x again, so there are no more than
/// run at the same time; for the head two rounds of them (whole model, decision 0006; no figure was recorded for the factor).
pub(crate) fn most_row_workgroups(outputs: u32) -> u32 {
    if outputs < HEAD_OUTPUTS { BUSY_WORKGROUPS } else { 2 * BUSY_WORKGROUPS }
}

/// Threads that should share an output, by the chunks of its row: each thread gets a few chunks, and a workgroup about 16 KiB
/// of weights (whole model; no figures were recorded but that of [`NARROW_OUTPUTS`]).
pub(crate) fn wanted_threads_per_output(chunks: u32, outputs: u32) -> u32 {
    match chunks {
        0..=8 => 8,
        _ if outputs <= NARROW_OUTPUTS => 32,
        9..=128 => 16,
        129..=256 => 32,
        _ => 64,
    }
}

/// Chunks that a thread loads at once. More cost registers, so fewer workgroups run at the same time (whole model, decision
/// 0006: three, with other changes, from 514 to 527 tokens per second). Two are better if x is staged in many pieces; no
/// figure was recorded.
pub(crate) fn most_unroll(chunks: u32, split_k: bool) -> u32 {
    if chunks > 256 && !split_k { 2 } else { 3 }
}

/// Steps of up to this many rows use `linear_row` for products without experts, because conversations that are decoded
/// together are few rows, and tiles need many (whole model, `rullama bench --parallel 16`: 941 tokens a second with tiles,
/// 2,076 without).
pub(crate) const MOST_DECODED_ROWS: u32 = 16;

/// The most partial sums that a residual sum adds, in steps of several rows. Not measured by itself.
pub(crate) const MOST_RESIDUAL_SPLITS: u32 = 8;

/// Rows that a workgroup computes in steps of several rows, by the number of weights. Workgroups of other rows read the same
/// weights from the cache. With more rows, small products have too few workgroups and each thread works for too long (whole
/// model, `rullama bench --parallel 8`: 1,025 tokens a second with eight rows, 1,017 with four, 1,461 with two, 1,373 with one;
/// with one row for small weights, 1,583 up to a million of them and 1,602 up to four).
pub(crate) fn rows_together(weights: u64) -> u32 {
    if weights <= 4_000_000 { 1 } else { 2 }
}

/// Workgroups that products of several rows make at most, as a share of [`most_row_workgroups`] in hundredths: fewer stage x
/// less often, more share the work better (whole model, `rullama bench --parallel 8`: 1,465 tokens a second with 100, 1,568
/// with 150, 1,547 with 200, 1,383 without limit).
pub(crate) const SEVERAL_ROWS_WORKGROUPS: u32 = 150;

// ---- products of many rows (`linear_tile`)

/// The fewest workgroups that keep the device busy, by tile size (one kernel, `lab_tile`: tiles reach 15 to 31 TFLOP/s, see
/// `docs/performance.md`). Those of `WIDE` have only 64 threads.
pub(crate) const BUSY_LARGE_TILES: u32 = 256;
pub(crate) const BUSY_WIDE_TILES: u32 = 768;
pub(crate) const BUSY_NARROW_TILES: u32 = 256;

/// The fewest rows for which the largest tiles are faster (one kernel, `lab_tile`).
pub(crate) const LARGE_TILE_ROWS: u32 = 128;

/// The most rows for [`Tiles::FEWEST`] and for [`Tiles::FEW`] (one kernel, `lab_tile`).
pub(crate) const FEWEST_TILE_ROWS: u32 = 16;
pub(crate) const FEW_TILE_ROWS: u32 = 32;

/// Tiles by the rows that an expert has on average, up to one and a half times the rows of a tile: larger tiles are mostly
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
    /// 128 × 128, 256 threads: the fewest reads from memory per product.
    pub const LARGE: Self = Self::new([128, 128], [8, 8], 1, 16);
    /// 64 × 64, 64 threads: as many products per read from workgroup memory, and four times the workgroups.
    pub const WIDE: Self = Self::new([64, 64], [8, 8], 1, 16);
    /// 64 × 32, the width shared by four groups of threads: twice the workgroups of `WIDE`, each with twice the threads.
    pub const NARROW: Self = Self::new([64, 32], [8, 8], 4, 32);
    /// 32 × 32, the width shared by four: for so few outputs that `NARROW` would leave processors idle.
    pub const SMALL: Self = Self::new([32, 32], [4, 4], 4, 64);
    /// 32 × 16, the width shared by eight: for few rows, where the outputs alone must fill the GPU.
    pub const FEW: Self = Self::new([32, 16], [4, 4], 8, 64);
    /// 16 × 16, the width shared by sixteen: for half as many rows.
    pub const FEWEST: Self = Self::new([16, 16], [4, 4], 16, 64);
    /// 32 × 64, the width shared by four: for experts of about that many rows.
    pub const FLAT: Self = Self::new([32, 64], [8, 8], 4, 32);
    /// 16 × 64, likewise.
    pub const FLATTER: Self = Self::new([16, 64], [4, 8], 4, 32);
    /// 8 × 64, likewise: a tile cannot have fewer rows.
    pub const FLATTEST: Self = Self::new([8, 64], [4, 8], 4, 32);
}

// ---- products of many rows on matrix units (`linear_matrix`), all by `lab_matrix`: `docs/decisions/0008-matrix-units.md`

impl MatrixTiles {
    /// 64 × 128, the width shared by two: 155 µs for 512 rows of 4096 → 1536, 433 in plain tiles.
    pub const WIDE: Self = Self { grid_rows: 2, grid_columns: 2, pieces: 4, parts: 2, depth: 64 };
    /// 32 × 64, the width shared by four: for so few rows and outputs that `WIDE` would leave processors idle.
    pub const SMALL: Self = Self { grid_rows: 1, grid_columns: 2, pieces: 2, parts: 4, depth: 128 };
}

/// Tiles that make fewer workgroups than this are not used (no figure was recorded).
pub(crate) const BUSY_MATRIX_TILES: u32 = 48;

/// The fewest rows for matrix units. Not measured: shorter prompts are read fast enough in single precision.
pub(crate) const MATRIX_ROWS: u32 = 65;

/// The narrowest input for matrix units (no figure was recorded: narrower products gain little).
pub(crate) const MATRIX_WIDTH: u32 = 1024;

// ---- products of a few rows (`linear_few`): whole model, `lab_model FILE together 8 300`, from 1,630 to 1,888 tokens per second

/// Threads of a workgroup, threads that share rows of the weight, rows of the weight of each thread, and chunks of x at a time;
/// then the fewest workgroups with which to use them. The preferred ones first; if there are too few workgroups with all, those
/// that make the most. Microseconds of a product in a step of eight rows of E2B by timestamps, which add about three, with each
/// of the four in turn: 1536 → 262,144 Q6_K: 341, 358, 343, 404; 1536 → 2 × 12,288 Q4_K: 49, 42, 45, 45; 6144 → 1536 Q6_K: 33,
/// 22, 18, 21; 1536 → 4096 Q4_K: 30, 22, 18, 15.
pub(crate) const FEW_TILES: [((u32, u32, u32, u32), u32); 4] =
    [((256, 8, 4, 16), 2048), ((256, 16, 4, 16), 384), ((128, 8, 2, 8), 384), ((256, 16, 2, 16), 128)];

/// The fewest rows. With four, 1,163 tokens per second instead of 1,128. With two and three not measured: decoding a weight
/// is then most of the work, and `linear_row` does not decode.
pub(crate) const FEWEST_ROWS: u32 = 4;

/// Products without partial sums need more weights than this: 1536 → 2048 took 14.4 µs, and 13.1 with `linear_row`.
pub(crate) const FEW_WEIGHTS: u64 = 4_000_000;

/// The narrowest input. Not measured: narrower products are one chunk per thread.
pub(crate) const FEW_WIDTH: u32 = 512;

// ---- attention

/// Splits of one row's context: the keys of a split, and the most splits. With a sliding window there are at most
/// [`PROLOGUE_SPLITS`], so that the next product can merge them (one kernel, `lab_attention`: 5 µs per layer in a window of
/// 512, 14 to 18 µs over 4096 keys without a window).
pub(crate) const SLIDING_SPLITS: (u32, u32) = (64, 8);
pub(crate) const GLOBAL_SPLITS: (u32, u32) = (32, 64);

/// The most splits that the next product merges in its prologue, where every workgroup repeats the merge. More splits are
/// merged by a dispatch of their own (whole model, decision 0006).
pub(crate) const PROLOGUE_SPLITS: u32 = 8;

/// Decoding: the fewest and the most threads that share a key. They hold eight columns each, up to four times. Not measured:
/// eight threads can hold a key of 64; with more than 64, fewer than the four groups of threads would be left that the kernel
/// needs.
pub(crate) const KEY_THREADS: (u32, u32) = (8, 64);

/// The most threads that share a key on devices without subgroups, where they exchange sums through workgroup memory. Not
/// measured: the fewest that can hold a head of 512.
pub(crate) const KEY_THREADS_WITHOUT_SUBGROUPS: u32 = 16;

/// Threads that normalise one head together, in steps of several rows (one kernel, `lab_attention`). A head of 256 has as
/// many groups of four columns in each half.
pub(crate) const HEAD_THREADS: u32 = 32;

/// Threads that share the splits of four columns when these are merged (one kernel, `lab_attention`). The kernel is written
/// for eight.
pub(crate) const MERGE_SLICES: u32 = 8;

// ---- unfused operations: those that fit no pattern, and all operations if fusion is off

/// Threads per workgroup of most unfused kernels. Not measured: few enough that a narrow row wastes little.
pub(crate) const PLAIN_THREADS: u32 = 64;

/// Threads per workgroup of a product, and threads that share an output. Not measured: a workgroup computes eight outputs, so
/// that the grid of a large vocabulary stays within WebGPU's limit.
pub(crate) const PLAIN_LINEAR_THREADS: u32 = 256;
pub(crate) const PLAIN_THREADS_PER_OUTPUT: u32 = 32;

/// Threads per workgroup of attention. Each scores one key at a time. Not measured: what WebGPU guarantees.
pub(crate) const PLAIN_ATTEND_THREADS: u32 = 256;

/// Threads per workgroup of the fused per-layer embeddings. Not measured: a group of 256 values is four values per thread.
pub(crate) const PER_LAYER_THREADS: u32 = 64;

// ---- steps

/// The most rows of a prompt step, unless more have to be read together (whole model; no figure was recorded). Row tables have
/// room for [`MOST_STEP_ROWS`](crate::rows::MOST_STEP_ROWS).
pub(crate) const MOST_ROWS: u32 = 512;

/// Prompt steps of more than [`FEW_ROWS`] and up to this many rows have a plan of their own, with smaller tiles (whole model;
/// no figure was recorded).
pub(crate) const SMALL_CHUNK: u32 = 64;

/// Steps in flight for a conversation while tokens are generated, so that the GPU does not wait for the host (whole model,
/// decision 0006: four steps, with other changes, from 66 to 360 tokens per second; no figure was recorded for other numbers).
pub(crate) const STEPS_IN_FLIGHT: usize = 4;

// ---- memory and loading

/// Two scratch values share a GPU buffer only if their sizes differ by at most this factor. Not measured: a larger factor
/// shares more buffers, and makes small values keep large ones from being shared.
pub(crate) const REUSE_RATIO: u64 = 8;

/// A readback buffer is reused only for reads of at least this fraction of its size. Not measured: keeps the small reads of
/// tokens from taking the large buffers of logits.
pub(crate) const READBACK_RATIO: u64 = 8;

/// Without a memory limit, one in this many experts has a page. Not measured: of the 128 experts of 26B-A4B a token uses
/// eight, so 32 pages keep those of several tokens.
pub(crate) const EXPERTS_PER_PAGE: u32 = 4;

/// The approximate size of a read while weights are loaded. Keeps host memory small: loading 3.42 GB in a tab takes up to
/// 57 MiB of wasm memory (`docs/performance.md`). Other sizes were not measured.
pub(crate) const READ_BYTES: u64 = 16 << 20;

/// The largest gap that is read along with its neighbours to save a request. Not measured: reading this much
/// takes less time than a request to a server.
pub(crate) const READ_GAP: u64 = 64 << 10;

/// Reads of table rows that are in flight at once. Not measured: each waits for a server's answer, and a prompt needs hundreds.
pub(crate) const TABLE_READS: usize = 16;

/// The most threads that pack weights. Not measured: a bound for machines with many cores.
pub(crate) const PACKING_THREADS: usize = 16;

/// The most threads that compile kernels. Chosen for memory, without a figure for speed: drivers take tens of megabytes per
/// thread.
#[cfg(not(target_family = "wasm"))]
pub(crate) const COMPILING_THREADS: usize = 4;

/// The size of the buffers that test whether memory is left for a conversation. Not measured: no larger than the
/// buffers of a conversation, because some GPUs have room for these, but not for larger ones.
pub(crate) const ROOM_BYTES: u64 = 64 << 20;

// ---- sampling

/// Tokens of which each thread of `maxima` finds the most probable. Fewer make more maxima, more make more candidates to
/// gather (one kernel, `lab_sample`: 10 µs for a greedy token, 33 µs with the defaults).
pub(crate) const MAXIMA_DEPTH: u32 = 64;
