//! Operations that only towers have. Most are simple loops: a tower's time goes into products and attention.

use rullama_graph::{Activation, AttendShape, Convolution};

use crate::{
    kernels::Kernels,
    parallel::{each_chunk, each_row},
};

/// Values that a thread computes at once where each is computed alone.
const CHUNK: usize = 1 << 12;

/// `(x − mean(x)) / sqrt(variance(x) + eps) · weight` over groups of columns.
pub(crate) fn layer_norm(
    kernels: &Kernels,
    x: &[f32],
    width: usize,
    weight: &[f32],
    eps: f32,
    out: &mut [f32],
) {
    let group = weight.len();
    each_row(out, width, |row, out| {
        for (x, out) in x[row * width..].chunks(group).zip(out.chunks_mut(group)) {
            (kernels.layer_norm)(x, weight, eps, out);
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
        let x = &x[chunk * groups..];
        if let &[weight] = weight {
            return out.iter_mut().zip(x).for_each(|(out, x)| *out = with(*x, weight));
        }
        for (x, out) in x.chunks(weight.len()).zip(out.chunks_mut(weight.len())) {
            for ((x, weight), out) in x.iter().zip(weight).zip(out) {
                *out = with(*x, *weight);
            }
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

/// An activation of each value.
pub(crate) fn activate(kernels: &Kernels, x: &[f32], with: Activation, out: &mut [f32]) {
    each_row(out, CHUNK, |chunk, out| (kernels.activate)(with, &x[chunk * CHUNK..][..out.len()], out));
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
    // A row of weights for each value that is seen, in the order of the input: all outputs are computed together.
    let mut by_input = vec![0.0; weight.len()];
    for (output, weight) in weight.chunks(seen).enumerate() {
        for (at, weight) in weight.iter().enumerate() {
            let (channel, within) = (at / 9, at % 9);
            by_input[(within * channels + channel) * outputs + output] = *weight;
        }
    }
    each_chunk(out, shape.output_width() as usize, |row, out| {
        out.fill(0.0);
        for (band, out) in out.chunks_mut(outputs).enumerate() {
            // Rows and bands count from one here: what would be before the first is row or band zero.
            let first_time = 2 * (first + row);
            let beside = (2 * band).max(1)..(2 * band + 3).min(bands + 1);
            for time in first_time.max(1)..(first_time + 3).min(rows + 1) {
                let from = (time - 1) * width + (beside.start - 1) * channels;
                let within = 3 * (time - first_time) + beside.start - 2 * band;
                let weights = &by_input[within * channels * outputs..];
                (kernels.add_weighted)(&x[from..][..beside.len() * channels], weights, outputs, out);
            }
        }
    });
}

/// Each column over the rows up to each: `weight` has `seen` values for a column, the last of them for the row itself.
pub(crate) fn convolve_columns(x: &[f32], width: usize, weight: &[f32], seen: usize, out: &mut [f32]) {
    // A row of weights for each distance.
    let mut by_distance = vec![0.0; weight.len()];
    for (column, weight) in weight.chunks(seen).enumerate() {
        weight
            .iter()
            .rev()
            .enumerate()
            .for_each(|(back, weight)| by_distance[back * width + column] = *weight);
    }
    each_row(out, width, |row, out| {
        out.fill(0.0);
        for (back, weight) in by_distance.chunks(width).enumerate().take(row + 1) {
            let x = &x[(row - back) * width..];
            out.iter_mut().zip(x).zip(weight).for_each(|((out, x), weight)| *out += x * weight);
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
