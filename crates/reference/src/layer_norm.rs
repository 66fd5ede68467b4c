//! `layer_norm`: `(x − mean(x)) / sqrt(variance(x) + eps)` over groups of columns.

use crate::Matrix;

pub(crate) fn layer_norm(x: &Matrix, weight: &[f32], eps: f32) -> Matrix {
    let mut out = x.clone();
    for group in out.values_mut().chunks_mut(weight.len()) {
        // In double precision, because the mean of large values would swallow small ones.
        let count = group.len() as f64;
        let mean = group.iter().map(|&value| f64::from(value)).sum::<f64>() / count;
        let squares: f64 = group.iter().map(|&value| (f64::from(value) - mean).powi(2)).sum();
        let variance = (squares / count) as f32;
        // A variance that overflows would turn the whole group into zeros, and nothing would show it.
        let scale = if variance.is_finite() { 1.0 / (variance + eps).sqrt() } else { f32::NAN };
        for (value, weight) in group.iter_mut().zip(weight) {
            *value = (f64::from(*value) - mean) as f32 * scale * weight;
        }
    }
    out
}
