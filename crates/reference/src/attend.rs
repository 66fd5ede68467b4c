//! `attend`: softmax attention over a cache, or over rows of the same step.

use std::ops::Range;

use rayon::prelude::*;
use rullama_graph::AttendShape;

use crate::{Matrix, linear::dot};

/// What one row attends to.
pub(crate) struct Seen<'a> {
    /// Keys of the row's conversation, a row for each position.
    pub(crate) keys: &'a [f32],
    /// Its values.
    pub(crate) values: &'a [f32],
    /// The positions it sees.
    pub(crate) positions: Range<usize>,
}

/// Attends from each row of `q` to what it sees.
pub(crate) fn attend(q: &Matrix, seen: &[Seen<'_>], shape: AttendShape) -> Matrix {
    let width = shape.head_width as usize;
    let kv_width = shape.kv_heads as usize * width;
    let served = (shape.heads / shape.kv_heads) as usize;
    let mut out = Matrix::zeros(q.rows(), q.width());
    out.values_mut().par_chunks_mut(width).enumerate().for_each(|(index, out)| {
        let (row, head) = (index / shape.heads as usize, index % shape.heads as usize);
        let Seen { keys, values, positions } = &seen[row];
        let column = head / served * width;
        let query = &q.row(row)[head * width..][..width];

        let mut scores: Vec<f32> =
            positions.clone().map(|at| dot(query, &keys[at * kv_width + column..][..width])).collect();
        softmax(&mut scores);
        for (at, score) in positions.clone().zip(scores) {
            let value = &values[at * kv_width + column..][..width];
            out.iter_mut().zip(value).for_each(|(out, value)| *out += score * value);
        }
    });
    out
}

/// Makes scores into probabilities. Scores reach hundreds here, so the largest is taken off first.
pub(crate) fn softmax(scores: &mut [f32]) {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = (*score - most).exp();
        sum += *score;
    }
    scores.iter_mut().for_each(|score| *score /= sum);
}
