//! `rms_norm`: `x / sqrt(mean(x²) + eps)` over groups of columns.

use crate::Matrix;

pub(crate) fn rms_norm(x: &Matrix, weight: Option<&[f32]>, group: usize, eps: f32) -> Matrix {
    let mut out = x.clone();
    for group in out.values_mut().chunks_mut(group) {
        // In double precision, because squares of large values would swallow small ones.
        let squares: f64 = group.iter().map(|&value| f64::from(value) * f64::from(value)).sum();
        let mean = (squares / group.len() as f64) as f32;
        // A mean that overflows would turn the whole group into zeros, and nothing would show it.
        let scale = if mean.is_finite() { 1.0 / (mean + eps).sqrt() } else { f32::NAN };
        match weight {
            Some(weight) => {
                group.iter_mut().zip(weight).for_each(|(value, weight)| *value = *value * scale * weight)
            }
            None => group.iter_mut().for_each(|value| *value *= scale),
        }
    }
    out
}
