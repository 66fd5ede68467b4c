//! `add`, `mul`, `scale`, `scale_by`, `bias`, `clamp`, `soft_cap`, `columns`, `last_row`, `mean_rows`: what needs no thought.

use crate::Matrix;

pub(crate) fn add(a: &Matrix, b: &Matrix) -> Matrix {
    pairwise(a, b, |a, b| a + b)
}

pub(crate) fn mul(a: &Matrix, b: &Matrix) -> Matrix {
    pairwise(a, b, |a, b| a * b)
}

pub(crate) fn scale(x: &Matrix, by: f32) -> Matrix {
    each(x, |x| x * by)
}

/// Groups of columns as long as `weight`, times it.
pub(crate) fn scale_by(x: &Matrix, weight: &[f32]) -> Matrix {
    by_column(x, weight, |x, weight| x * weight)
}

/// Groups of columns as long as `weight`, plus it.
pub(crate) fn bias(x: &Matrix, weight: &[f32]) -> Matrix {
    by_column(x, weight, |x, weight| x + weight)
}

/// NaN where `x` is infinite: the bounds would make it an ordinary number, and nothing would show that it was none.
pub(crate) fn clamp(x: &Matrix, low: f32, high: f32) -> Matrix {
    each(x, |x| if x.is_finite() { x.max(low).min(high) } else { f32::NAN })
}

/// NaN where `x` is infinite: the cap would make it an ordinary number, and nothing would show that it was none.
pub(crate) fn soft_cap(x: &Matrix, cap: f32) -> Matrix {
    each(x, |x| capped(x, cap))
}

pub(crate) fn capped(x: f32, cap: f32) -> f32 {
    if x.is_finite() { cap * (x / cap).tanh() } else { f32::NAN }
}

pub(crate) fn columns(x: &Matrix, first: usize, width: usize) -> Matrix {
    let values = (0..x.rows()).flat_map(|row| x.row(row)[first..first + width].iter().copied());
    Matrix::new(values.collect(), width)
}

/// Some of its rows, in this order.
pub(crate) fn rows_at(x: &Matrix, rows: &[usize]) -> Matrix {
    Matrix::new(rows.iter().flat_map(|&row| x.row(row)).copied().collect(), x.width())
}

/// The mean of each `group` neighbouring rows; of fewer, at the end.
pub(crate) fn mean_rows(x: &Matrix, group: usize) -> Matrix {
    let mut out = Matrix::zeros(x.rows().div_ceil(group), x.width());
    for (index, rows) in x.values().chunks(group * x.width()).enumerate() {
        let count = (rows.len() / x.width()) as f32;
        for row in rows.chunks(x.width()) {
            out.row_mut(index).iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        out.row_mut(index).iter_mut().for_each(|sum| *sum /= count);
    }
    out
}

pub(crate) fn pairwise(a: &Matrix, b: &Matrix, with: impl Fn(f32, f32) -> f32) -> Matrix {
    Matrix::new(a.values().iter().zip(b.values()).map(|(&a, &b)| with(a, b)).collect(), a.width())
}

fn by_column(x: &Matrix, weight: &[f32], with: impl Fn(f32, f32) -> f32) -> Matrix {
    let weights = weight.iter().cycle();
    Matrix::new(x.values().iter().zip(weights).map(|(&x, &weight)| with(x, weight)).collect(), x.width())
}

pub(crate) fn each(x: &Matrix, with: impl Fn(f32) -> f32) -> Matrix {
    Matrix::new(x.values().iter().map(|&x| with(x)).collect(), x.width())
}
