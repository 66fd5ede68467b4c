//! `attend`: softmax attention over a cache, or over rows of the same step.

use std::{cell::RefCell, ops::Range};

use rullama_graph::AttendShape;

use crate::{
    caches::Stored,
    kernels::{KEYS_TILE, Kernels, Queries},
    parallel,
};

/// Fewer products than this are not worth waking a thread.
const WORTH_SHARING: usize = 1 << 16;

/// Values of a block of signed bytes.
const BLOCK: usize = 32;

/// The keys and values that a step attends to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attended<'a> {
    pub(crate) keys: Stored<'a>,
    pub(crate) values: Stored<'a>,
    /// The position of the first.
    pub(crate) first: usize,
}

/// Numbers of one head on one thread.
#[derive(Default)]
struct Scratch {
    scores: Vec<f32>,
    decoded: Vec<f32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Attends from each row of `q` to the positions it sees. Rows and heads are spread over threads; no sum is.
pub(crate) fn attend(
    kernels: &Kernels,
    q: &[f32],
    to: Attended<'_>,
    seen: &[Range<usize>],
    shape: AttendShape,
    out: &mut [f32],
) {
    let (heads, width) = (shape.heads as usize, shape.head_width as usize);
    let served = heads / shape.kv_heads as usize;
    let kv_width = shape.kv_heads as usize * width;
    let head = |index: usize, out: &mut [f32]| {
        let query = &q[index * width..][..width];
        let column = index % heads / served * width;
        let positions = &seen[index / heads];
        let rows = positions.start - to.first..positions.end - to.first;
        let from = rows.start * kv_width + column;
        SCRATCH.with_borrow_mut(|Scratch { scores, decoded }| {
            scores.resize(rows.len(), 0.0);
            match to.keys {
                Stored::F32(keys) => (kernels.with_each)(query, &keys[from..], kv_width, scores),
                Stored::F16(keys) => (kernels.with_each_half)(query, &keys[from..], kv_width, scores),
                Stored::Q8 { quants, scales } => {
                    for (row, score) in rows.clone().zip(&mut *scores) {
                        decode(quants, scales, row, kv_width, column, decoded, width);
                        (kernels.with_each)(query, decoded, width, std::slice::from_mut(score));
                    }
                }
            }
            (kernels.softmax)(scores);
            out.fill(0.0);
            match to.values {
                Stored::F32(values) => (kernels.add_weighted)(scores, &values[from..], kv_width, out),
                Stored::F16(values) => (kernels.add_weighted_halves)(scores, &values[from..], kv_width, out),
                Stored::Q8 { quants, scales } => {
                    for (row, score) in rows.zip(&*scores) {
                        decode(quants, scales, row, kv_width, column, decoded, width);
                        (kernels.add_weighted)(std::slice::from_ref(score), decoded, width, out);
                    }
                }
            }
        });
    };
    let work: usize = seen.iter().map(|positions| 2 * heads * width * positions.len()).sum();
    if work < WORTH_SHARING {
        out.chunks_mut(width).enumerate().for_each(|(index, out)| head(index, out));
    } else {
        parallel::each_chunk(out, width, head);
    }
}

/// Blocks of queries that use a tile of keys before the next tile.
const BLOCKS: usize = 8;

/// What one thread needs for [`attend_all`].
#[derive(Default)]
struct TileScratch {
    blocks: [Queries; BLOCKS],
    keys: Vec<f32>,
    values: Vec<f32>,
}

thread_local! {
    static TILES: RefCell<TileScratch> = RefCell::default();
}

/// How many rows of queries [`attend_all`] should be given at least, so that all threads have work and a tile of keys serves
/// several blocks of queries.
pub(crate) fn rows_worth_sharing(kernels: &Kernels, heads: usize) -> usize {
    BLOCKS / 2 * kernels.queries * (2 * parallel::threads()).div_ceil(heads)
}

/// Attends from each row of `q` to all rows of `keys` and `values`. Heads and blocks of queries are spread over threads; no
/// sum is.
pub(crate) fn attend_all(
    kernels: &Kernels,
    q: &[f32],
    [keys, values]: [&[f32]; 2],
    shape: AttendShape,
    out: &mut [f32],
) {
    let (heads, width) = (shape.heads as usize, shape.head_width as usize);
    let served = heads / shape.kv_heads as usize;
    let kv_width = shape.kv_heads as usize * width;
    let count = q.len() / (heads * width);
    let share = |all: usize, threads: usize| all.div_ceil(threads.div_ceil(heads));
    let worth_sharing = 2 * q.len() * (keys.len() / kv_width) >= WORTH_SHARING;
    let threads = if worth_sharing { parallel::threads() } else { 1 };
    // Several tasks for each thread, but no more queries to a task than there are blocks.
    let at_once = share(count, 4 * threads).next_multiple_of(kernels.queries).min(BLOCKS * kernels.queries);
    let parts = count.div_ceil(at_once);
    let mut tasks: Vec<(usize, Vec<&mut [f32]>)> = (0..heads * parts)
        .map(|task| ((task / parts) + (task % parts) * at_once * heads, Vec::with_capacity(at_once)))
        .collect();
    for (index, out) in out.chunks_mut(width).enumerate() {
        let (row, head) = (index / heads, index % heads);
        tasks[head * parts + row / at_once].1.push(out);
    }
    // `first` is the number of the task's first query among those of all heads.
    let work = |(first, mut outs): (usize, Vec<&mut [f32]>)| {
        let column = first % heads / served * width;
        TILES.with_borrow_mut(|TileScratch { blocks, keys: tile_keys, values: tile_values }| {
            let blocks = &mut blocks[..outs.len().div_ceil(kernels.queries)];
            for (number, block) in blocks.iter_mut().enumerate() {
                let rows = number * kernels.queries..outs.len().min((number + 1) * kernels.queries);
                let queries = rows.map(|row| &q[(first + row * heads) * width..][..width]);
                block.begin(queries, width, kernels.queries);
            }
            let tiles = keys.chunks(KEYS_TILE * kv_width).zip(values.chunks(KEYS_TILE * kv_width));
            for (keys, values) in tiles {
                // Rows of one head are far apart, often by a power of two: the cache would keep few of them.
                gather(keys, kv_width, column, width, tile_keys);
                gather(values, kv_width, column, width, tile_values);
                blocks.iter_mut().for_each(|block| (kernels.attend_tile)(tile_keys, tile_values, block));
            }
            for (block, outs) in blocks.iter().zip(outs.chunks_mut(kernels.queries)) {
                block.finish(outs);
            }
        });
    };
    if threads == 1 {
        tasks.into_iter().for_each(work);
    } else {
        parallel::each(tasks, work);
    }
}

/// Copies some columns of all rows.
fn gather(rows: &[f32], row_width: usize, column: usize, width: usize, out: &mut Vec<f32>) {
    out.clear();
    rows.chunks(row_width).for_each(|row| out.extend_from_slice(&row[column..][..width]));
}

/// Decodes the columns of one head from a row of signed bytes.
fn decode(
    quants: &[i8],
    scales: &[f32],
    row: usize,
    kv_width: usize,
    column: usize,
    out: &mut Vec<f32>,
    width: usize,
) {
    out.resize(width, 0.0);
    let quants = &quants[row * kv_width.next_multiple_of(BLOCK)..][column..][..width];
    let scales = &scales[row * kv_width.div_ceil(BLOCK)..];
    if column.is_multiple_of(BLOCK) {
        let blocks = out.chunks_mut(BLOCK).zip(quants.chunks(BLOCK)).zip(&scales[column / BLOCK..]);
        for ((out, quants), scale) in blocks {
            out.iter_mut().zip(quants).for_each(|(out, &quant)| *out = scale * f32::from(quant));
        }
    } else {
        for (index, (out, &quant)) in out.iter_mut().zip(quants).enumerate() {
            *out = scales[(column + index) / BLOCK] * f32::from(quant);
        }
    }
}
