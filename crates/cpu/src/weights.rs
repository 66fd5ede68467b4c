//! Weights in their blocks, in memory as far as a limit allows.
//!
//! A step reads every weight once, in the same order each time. For such a cycle the best a bounded memory can do is to
//! keep what came first and to read the rest anew, so nothing is ever evicted. Tables that are only looked up in stay
//! where they are: a step reads one row of them for each token.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
    ops::Range,
    rc::Rc,
    sync::Arc,
};

use futures_util::future::try_join_all;
use rullama_gguf::{Format, Model, ModelTensor};
use rullama_graph::{Graph, Op, Weight, WeightInfo};

use crate::{CpuError, product::StoredRows};

/// What is not held is read in pieces of about this many bytes.
const PIECE: u64 = 32 << 20;

/// So many rows of a table are read at the same time.
const READ_AT_ONCE: usize = 16;

/// The weights of a model.
pub(crate) struct Weights {
    model: Rc<Model>,
    limit: u64,
    held: RefCell<Held>,
}

#[derive(Default)]
struct Held {
    bytes: u64,
    matrices: HashMap<String, Arc<Tensor>>,
    /// Vectors, decoded. They are small, so the limit does not count them.
    vectors: HashMap<String, Arc<[f32]>>,
}

/// A tensor in memory, as it is stored.
#[derive(Debug)]
struct Tensor {
    bytes: Vec<u8>,
    row_bytes: usize,
    format: Format,
}

/// What an operation needs of the model, in memory.
#[derive(Debug, Clone)]
pub(crate) enum Ready {
    Nothing,
    Vector(Arc<[f32]>),
    Matrices(Matrices),
}

/// A weight's matrices: one, or one for each expert.
#[derive(Debug, Clone)]
pub(crate) struct Matrices {
    tensor: Arc<Tensor>,
    /// Rows of each of the tensor's matrices, and those of them that belong to the weight.
    tensor_rows: usize,
    own_rows: Range<usize>,
    /// What all values are multiplied with.
    pub(crate) factor: f32,
}

impl Matrices {
    pub(crate) fn format(&self) -> Format {
        self.tensor.format
    }

    /// The rows of one matrix.
    pub(crate) fn rows(&self, matrix: usize) -> StoredRows<'_> {
        let Tensor { bytes, row_bytes, format } = &*self.tensor;
        let first = matrix * self.tensor_rows + self.own_rows.start;
        let bytes = &bytes[first * row_bytes..][..self.own_rows.len() * row_bytes];
        StoredRows { bytes, row_bytes: *row_bytes, format: *format }
    }
}

/// Some rows of a weight that is not held.
pub(crate) struct Piece {
    bytes: Vec<u8>,
    row_bytes: usize,
    format: Format,
}

impl Piece {
    pub(crate) fn rows(&self) -> StoredRows<'_> {
        StoredRows { bytes: &self.bytes, row_bytes: self.row_bytes, format: self.format }
    }

    pub(crate) fn count(&self) -> usize {
        self.bytes.len() / self.row_bytes
    }
}

impl Weights {
    pub(crate) fn new(model: Rc<Model>, limit: u64) -> Self {
        Self { model, limit, held: RefCell::default() }
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// What an operation needs, if it is in memory.
    pub(crate) fn ready(&self, graph: &Graph, op: &Op) -> Option<Ready> {
        let Some(weight) = op.weight() else { return Some(Ready::Nothing) };
        let (info, held) = (graph.weight(weight), self.held.borrow());
        if !is_matrix(op) {
            return Some(Ready::Vector(held.vectors.get(&info.tensor)?.clone()));
        }
        let factor = match info.scale {
            Some(scale) => held.vectors.get(&graph.weight(scale).tensor)?[0],
            None => 1.0,
        };
        let first = info.first_row as usize;
        Some(Ready::Matrices(Matrices {
            tensor: held.matrices.get(&info.tensor)?.clone(),
            tensor_rows: info.tensor_rows as usize,
            own_rows: first..first + info.rows as usize,
            factor,
        }))
    }

    /// Reads what an operation needs. Gives `None` if there is no room to hold its matrices.
    pub(crate) async fn read(&self, graph: &Graph, op: &Op) -> Result<Option<Ready>, CpuError> {
        if let Some(weight) = op.weight() {
            let info = graph.weight(weight);
            if is_matrix(op) {
                if let Some(scale) = info.scale {
                    self.read_vector(graph, scale).await?;
                }
                self.read_matrices(info).await?;
            } else {
                self.read_vector(graph, weight).await?;
            }
        }
        Ok(self.ready(graph, op))
    }

    async fn read_vector(&self, graph: &Graph, weight: Weight) -> Result<(), CpuError> {
        let info = graph.weight(weight);
        if self.held.borrow().vectors.contains_key(&info.tensor) {
            return Ok(());
        }
        let tensor = self.tensor(info)?;
        let bytes = self.model.read(tensor.rows_range(0..1)).await?;
        let mut values = vec![0.0; info.width as usize];
        decode(info, tensor.format, &bytes, &mut values)?;
        self.held.borrow_mut().vectors.insert(info.tensor.clone(), values.into());
        Ok(())
    }

    /// Holds a tensor, unless there is no room for it.
    async fn read_matrices(&self, info: &WeightInfo) -> Result<(), CpuError> {
        let tensor = self.tensor(info)?;
        let fits = {
            let held = self.held.borrow();
            !held.matrices.contains_key(&info.tensor) && held.bytes.saturating_add(tensor.bytes) <= self.limit
        };
        if fits {
            let Some(bytes) = self.read_whole(&tensor).await? else { return Ok(()) };
            let row_bytes = tensor.row_bytes() as usize;
            let tensor_bytes = tensor.bytes;
            let tensor = Arc::new(Tensor { bytes, row_bytes, format: tensor.format });
            let mut held = self.held.borrow_mut();
            // Another conversation may have read it in the meantime.
            if held.matrices.insert(info.tensor.clone(), tensor).is_none() {
                held.bytes += tensor_bytes;
            }
        }
        Ok(())
    }

    /// All bytes of a tensor; `None` if there is no room for them. A large one is read in pieces: a reader, and the browser
    /// that it reads from, would hold another copy of it at the same time.
    async fn read_whole(&self, tensor: &ModelTensor<'_>) -> Result<Option<Vec<u8>>, CpuError> {
        if tensor.bytes <= PIECE {
            return Ok(Some(self.model.read(tensor.range()).await?));
        }
        let mut bytes = Vec::new();
        if bytes.try_reserve_exact(tensor.bytes as usize).is_err() {
            return Ok(None);
        }
        let Range { mut start, end } = tensor.range();
        while start < end {
            let piece = start..end.min(start + PIECE);
            start = piece.end;
            bytes.extend_from_slice(&self.model.read(piece).await?);
        }
        Ok(Some(bytes))
    }

    /// Some rows of one of a weight's matrices, from row `from` on: never none.
    pub(crate) async fn piece(
        &self,
        info: &WeightInfo,
        matrix: usize,
        from: usize,
    ) -> Result<Piece, CpuError> {
        let tensor = self.tensor(info)?;
        let row_bytes = tensor.row_bytes();
        let start = matrix as u64 * u64::from(info.tensor_rows) + u64::from(info.first_row) + from as u64;
        let count = (PIECE / row_bytes.max(1)).clamp(1, u64::from(info.rows) - from as u64);
        let bytes = self.model.read(tensor.rows_range(start..start + count)).await?;
        Ok(Piece { bytes, row_bytes: row_bytes as usize, format: tensor.format })
    }

    /// What all values of a weight that is not held are multiplied with.
    pub(crate) fn factor(&self, graph: &Graph, info: &WeightInfo) -> f32 {
        let vector =
            |scale| self.held.borrow().vectors.get(&graph.weight(scale).tensor).map(|values| values[0]);
        info.scale.and_then(vector).unwrap_or(1.0)
    }

    pub(crate) fn format(&self, info: &WeightInfo) -> Result<Format, CpuError> {
        Ok(self.tensor(info)?.format)
    }

    /// Decodes rows of a table times `scale`, each to its place. Tables can be larger than everything else, so no more than these rows are
    /// read, several at a time: a server takes as long to answer for one as for all of them.
    pub(crate) async fn table_rows(
        &self,
        info: &WeightInfo,
        places: Vec<(u32, &mut [f32])>,
        scale: f32,
    ) -> Result<(), CpuError> {
        let held = self.held.borrow().matrices.get(&info.tensor).cloned();
        let scaled = |format, bytes: &[u8], out: &mut [f32]| {
            decode(info, format, bytes, out)?;
            out.iter_mut().for_each(|value| *value *= scale);
            Ok(())
        };
        if let Some(Tensor { bytes, row_bytes, format }) = held.as_deref() {
            let row = |row: u32| &bytes[row as usize * row_bytes..][..*row_bytes];
            return places.into_iter().try_for_each(|(number, out)| scaled(*format, row(number), out));
        }
        let tensor = self.tensor(info)?;
        let rows: BTreeSet<u64> = places.iter().map(|&(row, _)| row.into()).collect();
        let rows: Vec<u64> = rows.into_iter().collect();
        let mut read = HashMap::new();
        for rows in rows.chunks(READ_AT_ONCE) {
            let bytes = rows.iter().map(|&row| self.model.read(tensor.rows_range(row..row + 1)));
            read.extend(rows.iter().zip(try_join_all(bytes).await?));
        }
        places.into_iter().try_for_each(|(row, out)| scaled(tensor.format, &read[&u64::from(row)], out))
    }

    /// The tensor of a weight, in rows of the weight's width.
    fn tensor(&self, info: &WeightInfo) -> Result<ModelTensor<'_>, CpuError> {
        let found = self.model.tensor(&info.tensor);
        let found = found.and_then(|tensor| tensor.as_rows_of(info.width.into()));
        found.ok_or_else(|| CpuError::MissingTensor { tensor: info.tensor.clone() })
    }
}

/// Whether an operation multiplies with its weight, as opposed to reading all of its values as a vector.
fn is_matrix(op: &Op) -> bool {
    matches!(op, Op::Linear { .. } | Op::ExpertLinear { .. })
}

fn decode(info: &WeightInfo, format: Format, bytes: &[u8], out: &mut [f32]) -> Result<(), CpuError> {
    let result = format.decode(bytes, out);
    result.map_err(|source| CpuError::Format { tensor: info.tensor.clone(), source })
}
