//! Weights, from wherever the model is.
//!
//! A step reads every weight once, in the same order each time. For such a cycle the best a bounded memory
//! can do is to keep what came first and to read the rest anew, so nothing is ever thrown out.

use std::{cell::RefCell, collections::HashMap, ops::Range, rc::Rc, sync::Arc};

use rullama_gguf::{Format, Model, ModelTensor};
use rullama_graph::WeightInfo;

use crate::ReferenceError;

/// What is not kept is read in pieces of about this many bytes.
const PIECE: u64 = 32 << 20;

/// The weights of a model, of which some are held in memory.
pub struct Weights {
    model: Rc<Model>,
    limit: u64,
    held: RefCell<Held>,
}

#[derive(Default)]
struct Held {
    bytes: u64,
    tensors: HashMap<String, Arc<Vec<u8>>>,
}

/// Rows of a weight, as they are stored.
pub(crate) struct StoredRows {
    bytes: Arc<Vec<u8>>,
    at: usize,
    pub(crate) row_bytes: usize,
    pub(crate) format: Format,
    /// Which rows of the weight these are.
    pub(crate) rows: Range<usize>,
}

impl StoredRows {
    /// Decodes the row `row`, counted from the first of these.
    pub(crate) fn decode(&self, row: usize, out: &mut [f32]) {
        let start = self.at + row * self.row_bytes;
        self.format
            .decode(&self.bytes[start..start + self.row_bytes], out)
            .expect("a row of the tensor has the width of its weight");
    }
}

impl Weights {
    /// The weights of `model`, of which at most `limit` bytes are held in memory.
    pub fn new(model: Rc<Model>, limit: u64) -> Self {
        Self { model, limit, held: RefCell::default() }
    }

    /// The model they belong to.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// A vector, decoded.
    pub(crate) async fn vector(&self, info: &WeightInfo) -> Result<Vec<f32>, ReferenceError> {
        let rows = self.rows(info, 0, 0..1).await?;
        let mut values = vec![0.0; info.width as usize];
        rows.decode(0, &mut values);
        Ok(values)
    }

    /// Some rows of one of a weight's matrices. May give fewer than asked for, but never none: the caller
    /// goes on where these end.
    pub(crate) async fn rows(
        &self,
        info: &WeightInfo,
        matrix: usize,
        rows: Range<usize>,
    ) -> Result<StoredRows, ReferenceError> {
        let tensor = self.tensor(info)?;
        let row_bytes = tensor.row_bytes();
        let first = matrix as u64 * u64::from(info.tensor_rows) + u64::from(info.first_row);
        let stored = |bytes, at: u64, rows| StoredRows {
            bytes,
            // Within bytes that are in memory, so it fits.
            at: at as usize,
            row_bytes: row_bytes as usize,
            format: tensor.format,
            rows,
        };
        if let Some(bytes) = self.hold(&tensor).await? {
            return Ok(stored(bytes, (first + rows.start as u64) * row_bytes, rows));
        }
        let count = (PIECE / row_bytes.max(1)).clamp(1, rows.len() as u64);
        let start = first + rows.start as u64;
        let bytes = self.model.read(tensor.rows_range(start..start + count)).await?;
        Ok(stored(Arc::new(bytes), 0, rows.start..rows.start + count as usize))
    }

    /// One row of a table. Tables can be larger than everything else, so no more than the row is read.
    pub(crate) async fn table_row(&self, info: &WeightInfo, row: u32) -> Result<Vec<f32>, ReferenceError> {
        let tensor = self.tensor(info)?;
        let held = self.held.borrow().tensors.get(tensor.name).cloned();
        let row_bytes = tensor.row_bytes();
        let bytes = match held {
            Some(bytes) => {
                let start = (u64::from(row) * row_bytes) as usize;
                bytes[start..start + row_bytes as usize].to_vec()
            }
            None => self.model.read(tensor.rows_range(row.into()..u64::from(row) + 1)).await?,
        };
        let mut values = vec![0.0; info.width as usize];
        tensor
            .format
            .decode(&bytes, &mut values)
            .map_err(|source| ReferenceError::Format { tensor: info.tensor.clone(), source })?;
        Ok(values)
    }

    /// The tensor of a weight, in rows of the weight's width.
    fn tensor(&self, info: &WeightInfo) -> Result<ModelTensor<'_>, ReferenceError> {
        self.model
            .tensor(&info.tensor)
            .and_then(|tensor| tensor.as_rows_of(info.width.into()))
            .ok_or_else(|| ReferenceError::MissingTensor { tensor: info.tensor.clone() })
    }

    /// All of a tensor, if it is held or there is room to hold it.
    async fn hold(&self, tensor: &ModelTensor<'_>) -> Result<Option<Arc<Vec<u8>>>, ReferenceError> {
        if let Some(bytes) = self.held.borrow().tensors.get(tensor.name) {
            return Ok(Some(bytes.clone()));
        }
        if self.held.borrow().bytes.saturating_add(tensor.bytes) > self.limit {
            return Ok(None);
        }
        let bytes: Arc<Vec<u8>> = Arc::new(self.model.read(tensor.range()).await?);
        let mut held = self.held.borrow_mut();
        held.bytes += tensor.bytes;
        held.tensors.insert(tensor.name.to_owned(), bytes.clone());
        Ok(Some(bytes))
    }
}
