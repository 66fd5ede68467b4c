//! `embed`: rows of a table, by token.

use rullama_graph::{SoftRows, WeightInfo};

use crate::{Matrix, ReferenceError, Row, Step, Weights};

pub(crate) async fn embed(
    step: &Step<'_>,
    weights: &Weights,
    table: &WeightInfo,
    scale: f32,
    soft: SoftRows,
) -> Result<Matrix, ReferenceError> {
    let mut out = Matrix::zeros(step.len(), table.width as usize);
    let rows = step.sequences.iter().flat_map(|sequence| &sequence.rows);
    for (index, row) in rows.enumerate() {
        let token = match (row, soft) {
            (Row::Token(id), _) => *id,
            (Row::Soft(_), SoftRows::Token(id)) => id,
            (Row::Soft(given), SoftRows::Given) => {
                if given.len() != out.width() {
                    return Err(ReferenceError::SoftWidth { found: given.len(), expected: out.width() });
                }
                out.row_mut(index).copy_from_slice(given);
                continue;
            }
        };
        if token >= table.rows {
            return Err(ReferenceError::UnknownToken { id: token, vocabulary: table.rows });
        }
        let values = weights.table_row(table, token).await?;
        for (out, value) in out.row_mut(index).iter_mut().zip(values) {
            *out = value * scale;
        }
    }
    Ok(out)
}
