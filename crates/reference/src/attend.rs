//! `attend`: softmax attention over the cache.

use rayon::prelude::*;
use rullama_graph::{Ahead, AttendShape};

use crate::{Matrix, Step, linear::dot};

/// Attends from the rows of `q`, the last of a step whose first row is at position `first`.
pub(crate) fn attend(
    q: &Matrix,
    keys: &[f32],
    values: &[f32],
    shape: AttendShape,
    first: usize,
    step: &Step<'_>,
) -> Matrix {
    let width = shape.head_width as usize;
    let kv_width = shape.kv_heads as usize * width;
    let served = (shape.heads / shape.kv_heads) as usize;
    let skipped = step.rows.len() - q.rows();
    let mut out = Matrix::zeros(q.rows(), q.width());
    out.values_mut().par_chunks_mut(width).enumerate().for_each(|(index, out)| {
        let (row, head) = (index / shape.heads as usize, index % shape.heads as usize);
        let in_step = row + skipped;
        let position = first + in_step;
        let seen_to = match shape.mask.ahead {
            Ahead::Nothing => position + 1,
            Ahead::Span => first + step.span_end(in_step),
            Ahead::Step => first + step.rows.len(),
        };
        let seen = shape.mask.first(position)..seen_to;
        let column = head / served * width;
        let query = &q.row(row)[head * width..][..width];

        let mut scores: Vec<f32> =
            seen.clone().map(|at| dot(query, &keys[at * kv_width + column..][..width])).collect();
        softmax(&mut scores);
        for (at, score) in seen.zip(scores) {
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
