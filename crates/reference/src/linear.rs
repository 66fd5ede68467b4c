//! `linear`: `y = W · x`.

use rayon::prelude::*;
use rullama_graph::WeightInfo;

use crate::{Matrix, ReferenceError, Weights, weights::StoredRows};

/// Multiplies with one of a weight's matrices: the only one, or an expert's.
pub(crate) async fn linear(
    x: &Matrix,
    weights: &Weights,
    weight: &WeightInfo,
    matrix: usize,
) -> Result<Matrix, ReferenceError> {
    let rows = weight.rows as usize;
    // Outputs first, so that each thread writes a stretch of its own; turned around at the end.
    let mut by_output = vec![0.0; rows * x.rows()];
    let mut done = 0;
    while done < rows {
        let stored = weights.rows(weight, matrix, done..rows).await?;
        let end = stored.rows.end;
        multiply(x, &stored, &mut by_output[done * x.rows()..end * x.rows()]);
        done = end;
    }
    Ok(transposed(&by_output, rows, x.rows()))
}

/// `W · x` for some rows of `W` and all rows of `x`: a stretch of `x.rows()` results for each row of `W`.
fn multiply(x: &Matrix, stored: &StoredRows, out: &mut [f32]) {
    let at_once = (out.len() / x.rows() / (4 * rayon::current_num_threads())).max(1);
    out.par_chunks_mut(x.rows() * at_once).enumerate().for_each(|(chunk, out)| {
        let mut row = vec![0.0; x.width()];
        for (index, out) in out.chunks_mut(x.rows()).enumerate() {
            stored.decode(chunk * at_once + index, &mut row);
            for (token, out) in out.iter_mut().enumerate() {
                *out = dot(&row, x.row(token));
            }
        }
    });
}

fn transposed(values: &[f32], rows: usize, columns: usize) -> Matrix {
    if columns == 1 {
        return Matrix::new(values.to_vec(), rows);
    }
    let mut out = Matrix::zeros(columns, rows);
    for column in 0..columns {
        for (row, out) in out.row_mut(column).iter_mut().enumerate() {
            *out = values[row * columns + column];
        }
    }
    out
}

/// The sum of products. Sixteen sums side by side, which the compiler keeps in vector registers, and
/// always in the same order, so that a row's result never depends on its neighbours.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut sums = [0.0; LANES];
    let (a_rest, b_rest) = (a.chunks_exact(LANES).remainder(), b.chunks_exact(LANES).remainder());
    for (a, b) in a.chunks_exact(LANES).zip(b.chunks_exact(LANES)) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}
