//! `attend`: softmax attention over a cache, or over rows of the same step.

use std::{cell::RefCell, ops::Range};

use rullama_graph::AttendShape;

use crate::{caches::Stored, kernels::Kernels, parallel};

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
