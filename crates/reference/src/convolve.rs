//! `convolve`, over time and bands, and `convolve_columns`, over rows.

use rayon::prelude::*;
use rullama_graph::Convolution;

use crate::Matrix;

/// Rows and bands that a kernel sees.
const SIDE: usize = 3;

/// Every second row and band of a convolution of three by three. What is beyond the edges is zero.
pub(crate) fn convolve(x: &Matrix, weight: &[f32], shape: Convolution) -> Matrix {
    let (bands, channels) = (shape.bands as usize, shape.channels as usize);
    let outputs = shape.outputs as usize;
    let mut out = Matrix::zeros(x.rows().div_ceil(2), shape.output_width() as usize);
    let width = out.width();
    out.values_mut().par_chunks_mut(width).enumerate().for_each(|(row, out)| {
        for (band, out) in out.chunks_mut(outputs).enumerate() {
            for (output, out) in out.iter_mut().enumerate() {
                for channel in 0..channels {
                    let kernel = &weight[(output * channels + channel) * SIDE * SIDE..][..SIDE * SIDE];
                    for (at, weight) in kernel.iter().enumerate() {
                        // The first of the three is the one before.
                        let (time, beside) = (2 * row + at / SIDE, 2 * band + at % SIDE);
                        if (1..=x.rows()).contains(&time) && (1..=bands).contains(&beside) {
                            *out += weight * x.row(time - 1)[(beside - 1) * channels + channel];
                        }
                    }
                }
            }
        }
    });
    out
}

/// Each column over the rows up to each: `weight` has `rows` values for a column, the last of them for the row itself.
pub(crate) fn convolve_columns(x: &Matrix, weight: &[f32], rows: usize) -> Matrix {
    let mut out = Matrix::zeros(x.rows(), x.width());
    for row in 0..x.rows() {
        for (column, out) in out.row_mut(row).iter_mut().enumerate() {
            for back in 0..rows.min(row + 1) {
                *out += weight[column * rows + rows - 1 - back] * x.row(row - back)[column];
            }
        }
    }
    out
}
