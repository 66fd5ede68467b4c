//! `route`: which experts a token is sent to.

use crate::{Matrix, attend::softmax};

/// Probabilities that sum to less than this are not scaled up to one.
const SMALLEST_SUM: f32 = 6.103_515_6e-5;

/// For each row, the numbers of the `used` most probable experts and then their weights.
pub(crate) fn route(logits: &Matrix, used: usize) -> Matrix {
    let mut out = Matrix::zeros(logits.rows(), 2 * used);
    for row in 0..logits.rows() {
        let mut probabilities = logits.row(row).to_vec();
        softmax(&mut probabilities);
        let mut experts: Vec<usize> = (0..probabilities.len()).collect();
        // Stable, so that of equally probable experts the first comes first.
        experts.sort_by(|&a, &b| probabilities[b].total_cmp(&probabilities[a]));
        let chosen = &experts[..used];
        let sum = chosen.iter().map(|&expert| probabilities[expert]).sum::<f32>().max(SMALLEST_SUM);
        let (numbers, weights) = out.row_mut(row).split_at_mut(used);
        for ((number, weight), &expert) in numbers.iter_mut().zip(weights).zip(chosen) {
            *number = expert as f32;
            *weight = probabilities[expert] / sum;
        }
    }
    out
}
