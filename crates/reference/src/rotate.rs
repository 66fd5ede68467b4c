//! `rotate`: pairs of columns turned by angles that are given.

use crate::Matrix;

/// Rotates the heads of `x`, which are as wide as `turns`: each part of a head by the cosines and then the sines in the same
/// part of its row of `turns`.
pub(crate) fn rotate(x: &Matrix, turns: &Matrix, part: usize) -> Matrix {
    let half = part / 2;
    let mut out = x.clone();
    for row in 0..x.rows() {
        for head in out.row_mut(row).chunks_mut(turns.width()) {
            for (part, turns) in head.chunks_mut(part).zip(turns.row(row).chunks(part)) {
                let ((first, second), (cos, sin)) = (part.split_at_mut(half), turns.split_at(half));
                for ((a, b), (cos, sin)) in first.iter_mut().zip(second).zip(cos.iter().zip(sin)) {
                    (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
                }
            }
        }
    }
    out
}
