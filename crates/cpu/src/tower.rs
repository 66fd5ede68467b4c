//! Operations that only towers have. They are simple loops: a tower's time goes into products and attention.

use rullama_graph::{Activation, AttendShape, Convolution};

use crate::{
    kernels::Kernels,
    parallel::{each_chunk, each_row},
};

/// Values that a thread computes at once where each is computed alone.
const CHUNK: usize = 1 << 12;

/// `(x − mean(x)) / sqrt(variance(x) + eps) · weight` over groups of columns.
pub(crate) fn layer_norm(x: &[f32], width: usize, weight: &[f32], eps: f32, out: &mut [f32]) {
    let group = weight.len();
    each_row(out, width, |row, out| {
        for (x, out) in x[row * width..].chunks(group).zip(out.chunks_mut(group)) {
            let mean = (x.iter().map(|&x| f64::from(x)).sum::<f64>() / group as f64) as f32;
            let squares: f64 = x.iter().map(|&x| f64::from(x - mean).powi(2)).sum();
            let variance = (squares / group as f64) as f32;
            // A variance that overflows would turn the whole group into zeros, and nothing would show it.
            let scale = if variance.is_finite() { 1.0 / (variance + eps).sqrt() } else { f32::NAN };
            for ((x, out), weight) in x.iter().zip(out).zip(weight) {
                *out = (x - mean) * scale * weight;
            }
        }
    });
}

/// Turns the heads of each row, which are as wide as a row of `turns`.
pub(crate) fn rotate(x: &[f32], width: usize, turns: &[f32], head: usize, part: usize, out: &mut [f32]) {
    let half = part / 2;
    each_row(out, width, |row, out| {
        out.copy_from_slice(&x[row * width..][..width]);
        let turns = &turns[row * head..][..head];
        for head in out.chunks_mut(head) {
            for (part, turns) in head.chunks_mut(part).zip(turns.chunks(part)) {
                let ((first, second), (cos, sin)) = (part.split_at_mut(half), turns.split_at(half));
                for ((a, b), (cos, sin)) in first.iter_mut().zip(second).zip(cos.iter().zip(sin)) {
                    (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
                }
            }
        }
    });
}

/// Groups of columns as long as `weight`, each with a value of it.
pub(crate) fn by_column(
    x: &[f32],
    weight: &[f32],
    out: &mut [f32],
    with: impl Fn(f32, f32) -> f32 + Sync + Send,
) {
    let groups = (CHUNK / weight.len()).max(1) * weight.len();
    each_row(out, groups, |chunk, out| {
        for ((x, weight), out) in x[chunk * groups..].iter().zip(weight.iter().cycle()).zip(out) {
            *out = with(*x, *weight);
        }
    });
}

/// A function of each value: NaN where it is infinite, as in the reference.
pub(crate) fn each_finite(x: &[f32], out: &mut [f32], with: impl Fn(f32) -> f32 + Sync + Send) {
    each_chunk(out, CHUNK, |chunk, out| {
        for (x, out) in x[chunk * CHUNK..].iter().zip(out) {
            *out = if x.is_finite() { with(*x) } else { f32::NAN };
        }
    });
}

pub(crate) fn activate(x: &[f32], with: Activation, out: &mut [f32]) {
    let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
    match with {
        Activation::Relu => each_finite(x, out, |x| x.max(0.0)),
        Activation::Sigmoid => each_finite(x, out, sigmoid),
        Activation::Silu => each_finite(x, out, |x| x * sigmoid(x)),
        Activation::QuickGelu => each_finite(x, out, |x| x * sigmoid(1.702 * x)),
    }
}

/// Every second row and band of a convolution of three by three, from result row `first` on. What is beyond the edges is zero.
pub(crate) fn convolve(
    kernels: &Kernels,
    x: &[f32],
    weight: &[f32],
    shape: Convolution,
    first: usize,
    out: &mut [f32],
) {
    let (bands, channels) = (shape.bands as usize, shape.channels as usize);
    let (outputs, width, seen) = (shape.outputs as usize, shape.width() as usize, 9 * channels);
    let rows = x.len() / width;
    // All that one output sees is taken together in the order of the weights, and multiplied at once.
    each_chunk(out, shape.output_width() as usize, |row, out| {
        let mut patch = vec![0.0; seen];
        for (band, out) in out.chunks_mut(outputs).enumerate() {
            for (at, patch) in patch.iter_mut().enumerate() {
                let (channel, within) = (at / 9, at % 9);
                // The first of the three is the one before.
                let (time, beside) = (2 * (first + row) + within / 3, 2 * band + within % 3);
                let inside = (1..=rows).contains(&time) && (1..=bands).contains(&beside);
                *patch = if inside { x[(time - 1) * width + (beside - 1) * channels + channel] } else { 0.0 };
            }
            (kernels.with_each)(&patch, weight, seen, out);
        }
    });
}

/// Each column over the rows up to each: `weight` has `seen` values for a column, the last of them for the row itself.
pub(crate) fn convolve_columns(x: &[f32], width: usize, weight: &[f32], seen: usize, out: &mut [f32]) {
    each_row(out, width, |row, out| {
        for (column, out) in out.iter_mut().enumerate() {
            let weight = &weight[column * seen..][..seen];
            let back = 0..seen.min(row + 1);
            *out = back.map(|back| weight[seen - 1 - back] * x[(row - back) * width + column]).sum();
        }
    });
}

/// Softmax attention within rows, with keys that depend on the distance and with capped scores. The results are those of the
/// rows from `first` on.
pub(crate) fn attend_relative(
    kernels: &Kernels,
    [q, k, v, distances]: [&[f32]; 4],
    shape: AttendShape,
    cap: f32,
    first: usize,
    out: &mut [f32],
) {
    let (heads, width) = (shape.heads as usize, shape.head_width as usize);
    let all = heads * width;
    // One row at a time: its heads share what is allocated.
    each_chunk(out, all, |row, out| {
        let row = first + row;
        let seen = shape.mask.first(row)..row + 1;
        let mut scores = vec![0.0f32; 3 * seen.len()];
        let (products, rest) = scores.split_at_mut(seen.len());
        let (near, scores) = rest.split_at_mut(seen.len());
        let near = &mut near[..seen.len().min(distances.len() / all)];
        for (head, out) in out.chunks_mut(width).enumerate() {
            let column = head * width;
            let query = &q[row * all + column..][..width];
            let from = seen.start * all + column;
            (kernels.with_each)(query, &k[from..], all, products);
            (kernels.with_each)(query, &distances[column..], all, near);
            for (product, near) in products.iter_mut().rev().zip(&*near) {
                *product += near;
            }
            (kernels.soft_cap)(products, cap, scores);
            (kernels.softmax)(scores);
            out.fill(0.0);
            (kernels.add_weighted)(scores, &v[from..], all, out);
        }
    });
}
