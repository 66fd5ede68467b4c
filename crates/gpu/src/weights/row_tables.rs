//! Embedding tables that stay in the file. A buffer holds the rows of a step's tokens.

use std::{collections::HashMap, ops::Range};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use rullama_gguf::{Model, ModelTensor};

use super::{
    Manifest, Residency,
    manifest::find,
    resident::{packed_rows, write_rows},
};
use crate::{Gpu, GpuError, rows::MOST_SLOTS, tuning::TABLE_READS};

/// The rows of one step, of all tables that stay in the file.
pub(crate) struct RowTables {
    /// The index of each packed tensor, and the buffer of its rows.
    tables: Vec<(usize, wgpu::Buffer)>,
    /// For each token of a step, its row in these buffers: the first row is the first token's, and so on. Kernels read this in
    /// place of the tokens.
    numbers: wgpu::Buffer,
}

/// Browsers free buffers late, so large ones are destroyed here.
impl Drop for RowTables {
    fn drop(&mut self) {
        self.tables.iter().for_each(|(_, buffer)| buffer.destroy());
    }
}

impl RowTables {
    /// Buffers for steps of up to `most_rows` tokens; none if no table stays in the file.
    pub(crate) fn new(gpu: &Gpu, manifest: &Manifest, most_rows: u32) -> Result<Option<Self>, GpuError> {
        let mut tables = Vec::new();
        for (index, packed) in manifest.resident(Residency::Rows) {
            tables.push((index, gpu.storage("rows of a table", packed.bytes())?));
        }
        if tables.is_empty() {
            return Ok(None);
        }
        // At the indices that the row table gives to tokens written by the host.
        let numbers = gpu.storage("row numbers", 4 * u64::from(MOST_SLOTS + most_rows))?;
        let words: Vec<u32> = (0..most_rows).collect();
        gpu.queue.write_buffer(&numbers, 4 * u64::from(MOST_SLOTS), bytemuck::cast_slice(&words));
        Ok(Some(Self { tables, numbers }))
    }

    /// The rows of a packed tensor.
    pub(crate) fn table(&self, packed: usize) -> &wgpu::Buffer {
        let found = self.tables.iter().find(|(index, _)| *index == packed);
        &found.expect("every table that stays in the file has room for rows").1
    }

    /// The row of each token, which kernels read in place of the tokens.
    pub(crate) fn numbers(&self) -> &wgpu::Buffer {
        &self.numbers
    }

    /// Reads, packs and uploads the rows of these tokens.
    pub(crate) async fn fill(
        &self,
        gpu: &Gpu,
        model: &Model,
        manifest: &Manifest,
        ids: &[u32],
    ) -> Result<(), GpuError> {
        for (index, buffer) in &self.tables {
            let packed = &manifest.packed[*index];
            let tensor = find(model, &packed.parts[0].tensor)?;
            let blocks = blocks(model, &tensor, ids).await?;
            let planes = packed_rows(&tensor, &packed.packing, &blocks, ids.len())?;
            write_rows(gpu, packed, std::slice::from_ref(buffer), 0, &planes);
        }
        Ok(())
    }
}

/// The blocks of the rows of these tokens, in order. Each row is read once, and adjacent rows with one request.
async fn blocks(model: &Model, tensor: &ModelTensor<'_>, ids: &[u32]) -> Result<Vec<u8>, GpuError> {
    let mut rows: Vec<u64> = ids.iter().map(|&id| id.into()).collect();
    rows.sort_unstable();
    rows.dedup();
    let runs: Vec<Range<u64>> =
        rows.chunk_by(|a, b| a + 1 == *b).map(|run| run[0]..run[run.len() - 1] + 1).collect();
    let reads = runs.iter().map(|run| model.read(tensor.rows_range(run.clone())));
    let bytes: Vec<Vec<u8>> = stream::iter(reads).buffered(TABLE_READS).try_collect().await?;
    let row_bytes = tensor.row_bytes() as usize;
    let mut found: HashMap<u64, &[u8]> = HashMap::new();
    for (run, bytes) in runs.iter().zip(&bytes) {
        found.extend(run.clone().zip(bytes.chunks_exact(row_bytes)));
    }
    Ok(ids.iter().flat_map(|&id| found[&u64::from(id)]).copied().collect())
}
