//! `attend_relative`: softmax attention within rows, with keys that depend on the distance and with capped scores.

use rayon::prelude::*;
use rullama_graph::AttendShape;

use crate::{Matrix, attend::softmax, elementwise::capped, linear::dot};

pub(crate) fn attend_relative([q, k, v, distances]: [&Matrix; 4], shape: AttendShape, cap: f32) -> Matrix {
    let width = shape.head_width as usize;
    let mut out = Matrix::zeros(q.rows(), q.width());
    out.values_mut().par_chunks_mut(width).enumerate().for_each(|(index, out)| {
        let (row, column) = (index / shape.heads as usize, index % shape.heads as usize * width);
        let query = &q.row(row)[column..][..width];
        let seen = shape.mask.first(row)..row + 1;
        let score = |at: usize| {
            let distance = row - at;
            let near = distance < distances.rows();
            let added = if near { dot(query, &distances.row(distance)[column..][..width]) } else { 0.0 };
            capped(dot(query, &k.row(at)[column..][..width]) + added, cap)
        };
        let mut scores: Vec<f32> = seen.clone().map(score).collect();
        softmax(&mut scores);
        for (at, score) in seen.zip(scores) {
            let value = &v.row(at)[column..][..width];
            out.iter_mut().zip(value).for_each(|(out, value)| *out += score * value);
        }
    });
    out
}
