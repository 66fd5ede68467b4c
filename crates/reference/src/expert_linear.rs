//! `expert_linear`: `y_e = W_e · x` for each expert a row is routed to.

use std::collections::BTreeMap;

use rullama_graph::WeightInfo;

use crate::{Matrix, ReferenceError, Weights, linear::linear};

pub(crate) async fn expert_linear(
    x: &Matrix,
    routing: &Matrix,
    weights: &Weights,
    weight: &WeightInfo,
) -> Result<Matrix, ReferenceError> {
    let (width, rows) = (weight.width as usize, weight.rows as usize);
    let used = routing.width() / 2;
    let own_inputs = x.width() == used * width && used > 1;

    // Expert by expert, so that each one's weights are read once for all the rows that use it.
    let mut by_expert: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
    for row in 0..routing.rows() {
        for slot in 0..used {
            by_expert.entry(routing.row(row)[slot] as usize).or_default().push((row, slot));
        }
    }
    let mut out = Matrix::zeros(x.rows(), used * rows);
    for (expert, places) in by_expert {
        let mut inputs = Matrix::zeros(places.len(), width);
        for (index, &(row, slot)) in places.iter().enumerate() {
            let first = if own_inputs { slot * width } else { 0 };
            inputs.row_mut(index).copy_from_slice(&x.row(row)[first..first + width]);
        }
        let outputs = linear(&inputs, weights, weight, expert).await?;
        for (index, &(row, slot)) in places.iter().enumerate() {
            out.row_mut(row)[slot * rows..][..rows].copy_from_slice(outputs.row(index));
        }
    }
    Ok(out)
}
