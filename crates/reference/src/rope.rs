//! `rope`: rotary position embedding.

use rullama_graph::Rope;

use crate::Matrix;

/// Rotates the heads of `x`, each row by its position.
pub(crate) fn rope(x: &Matrix, positions: &[usize], by: Rope, factors: Option<&[f32]>) -> Matrix {
    let half = by.head_width as usize / 2;
    let mut out = x.clone();
    for (row, &position) in positions.iter().enumerate() {
        // Angles in double precision: at long positions f32 has no digits left for their fraction.
        let turns: Vec<(f32, f32)> = (0..by.pairs as usize)
            .map(|pair| {
                let factor = factors.map_or(1.0, |factors| f64::from(factors[pair]));
                let exponent = -2.0 * pair as f64 / f64::from(by.head_width);
                let angle = position as f64 * f64::from(by.base).powf(exponent) / factor;
                (angle.cos() as f32, angle.sin() as f32)
            })
            .collect();
        for head in out.row_mut(row).chunks_mut(2 * half) {
            let (first, second) = head.split_at_mut(half);
            for ((a, b), &(cos, sin)) in first.iter_mut().zip(second).zip(&turns) {
                (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
            }
        }
    }
    out
}
