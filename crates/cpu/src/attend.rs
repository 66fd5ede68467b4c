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
        SCRATCH.with_borrow_mut(|Scratch { scores, decoded }| {
            scores.clear();
            decoded.resize(width, 0.0);
            let part = |row: usize| (row * kv_width + column)..(row * kv_width + column + width);
            match to.keys {
                Stored::F32(keys) => {
                    for row in rows.clone() {
                        let mut score = [0.0];
                        (kernels.float_products)(query, &[&keys[part(row)]], &mut score);
                        scores.push(score[0]);
                    }
                }
                Stored::F16(keys) => {
                    scores.extend(rows.clone().map(|row| (kernels.half_product)(query, &keys[part(row)])));
                }
                Stored::Q8 { quants, scales } => {
                    for row in rows.clone() {
                        decode(quants, scales, row, kv_width, column, decoded);
                        let mut score = [0.0];
                        (kernels.float_products)(query, &[decoded], &mut score);
                        scores.push(score[0]);
                    }
                }
            }
            (kernels.softmax)(scores);
            out.fill(0.0);
            for (row, &score) in rows.zip(&*scores) {
                match to.values {
                    Stored::F32(values) => (kernels.add_scaled)(out, score, &values[part(row)]),
                    Stored::F16(values) => (kernels.add_scaled_halves)(out, score, &values[part(row)]),
                    Stored::Q8 { quants, scales } => {
                        decode(quants, scales, row, kv_width, column, decoded);
                        (kernels.add_scaled)(out, score, decoded);
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
fn decode(quants: &[i8], scales: &[f32], row: usize, kv_width: usize, column: usize, out: &mut [f32]) {
    let quants = &quants[row * kv_width.next_multiple_of(BLOCK)..][column..][..out.len()];
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
