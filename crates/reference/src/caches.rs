//! Keys and values of every token so far.
//!
//! Nothing is thrown away, not even what a sliding layer no longer sees, so that a conversation can be set
//! back to any point. A GPU cannot afford that; the yardstick can.

use rullama_gguf::{Format, format::FormatError};
use rullama_graph::{Cache, CacheFormat, CacheInfo, Graph};

use crate::Matrix;

/// The caches of a graph.
#[derive(Debug, Clone)]
pub struct Caches {
    layers: Vec<LayerCache>,
    /// The format that keys and values are rounded to when they are stored.
    format: CacheFormat,
    len: usize,
}

#[derive(Debug, Clone)]
struct LayerCache {
    width: usize,
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl Caches {
    /// Empty caches for a graph. Graphs of one model, whatever rows they compute, share them.
    pub fn new(graph: &Graph, format: CacheFormat) -> Self {
        let empty = |info: &CacheInfo| LayerCache {
            width: info.width() as usize,
            keys: Vec::new(),
            values: Vec::new(),
        };
        Self { layers: graph.caches().iter().map(empty).collect(), format, len: 0 }
    }

    /// Tokens cached.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is cached.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets everything after the first `len` tokens. What a step left behind when it failed goes too.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        for layer in &mut self.layers {
            layer.keys.truncate(self.len * layer.width);
            layer.values.truncate(self.len * layer.width);
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.layers.iter().map(|layer| 4 * (layer.keys.capacity() + layer.values.capacity())).sum()
    }

    /// Bytes that `rows` more tokens add.
    pub(crate) fn growth(&self, rows: usize) -> u64 {
        self.layers.iter().map(|layer| 8 * layer.width as u64 * rows as u64).sum()
    }

    /// Counts the rows of a finished step.
    pub(crate) fn advance(&mut self, rows: usize) {
        self.len += rows;
    }

    /// Appends the keys and values of a step's rows.
    pub(crate) fn store(&mut self, cache: Cache, keys: &Matrix, values: &Matrix) -> Result<(), FormatError> {
        let format = self.format;
        let layer = &mut self.layers[cache.index()];
        append(&mut layer.keys, keys, format)?;
        append(&mut layer.values, values, format)
    }

    /// All keys and all values of a layer, a row of `width` for each token.
    pub(crate) fn layer(&self, cache: Cache) -> (&[f32], &[f32]) {
        let layer = &self.layers[cache.index()];
        (&layer.keys, &layer.values)
    }
}

fn append(stored: &mut Vec<f32>, rows: &Matrix, format: CacheFormat) -> Result<(), FormatError> {
    let start = stored.len();
    // Room for many steps at once where there is memory for it, else for this one, which was checked beforehand.
    if stored.try_reserve(rows.values().len()).is_err() {
        stored.reserve_exact(rows.values().len());
    }
    stored.extend_from_slice(rows.values());
    let new = &mut stored[start..];
    match format {
        CacheFormat::F32 => Ok(()),
        CacheFormat::F16 => round(new, Format::F16),
        // A row that is no multiple of a block ends in a block of its own, filled up with zeros.
        CacheFormat::Q8 => new.chunks_mut(rows.width()).try_for_each(|row| {
            row.chunks_mut(Format::Q8_0.block_len()).try_for_each(|block| {
                let mut whole = [0.0; 32];
                whole[..block.len()].copy_from_slice(block);
                round(&mut whole, Format::Q8_0)?;
                block.copy_from_slice(&whole[..block.len()]);
                Ok(())
            })
        }),
    }
}

/// Replaces values by what is left of them after they were stored in `format`.
fn round(values: &mut [f32], format: Format) -> Result<(), FormatError> {
    let mut bytes = vec![0; values.len() / format.block_len() * format.block_bytes()];
    format.encode(values, &mut bytes)?;
    format.decode(&bytes, values)
}
