//! `combine`: the weighted sum of the experts' outputs.

use crate::Matrix;

pub(crate) fn combine(x: &Matrix, routing: &Matrix, scale: Option<&[f32]>) -> Matrix {
    let used = routing.width() / 2;
    let width = x.width() / used;
    let mut out = Matrix::zeros(x.rows(), width);
    for row in 0..x.rows() {
        let (experts, weights) = routing.row(row).split_at(used);
        for slot in 0..used {
            let own = scale.map_or(1.0, |scale| scale[experts[slot] as usize]);
            let answer = &x.row(row)[slot * width..][..width];
            for (out, value) in out.row_mut(row).iter_mut().zip(answer) {
                *out += weights[slot] * (own * value);
            }
        }
    }
    out
}
