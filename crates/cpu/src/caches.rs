//! Keys and values of a conversation's tokens.
//!
//! A layer with a sliding window keeps the rows that its window can still reach, and some more, so that a conversation can
//! be set back by that many tokens. Rows lie one after another; when many have become useless, the others move to the
//! front.

use rullama_gguf::{Format, FormatError};
use rullama_graph::{Cache, CacheFormat, CacheInfo, Graph};

use crate::kernels::Half;

/// Tokens by which a conversation can be set back at any time. Beyond that, it may have to be read again.
const SET_BACK: usize = 1024;

/// Values of a block of signed bytes.
const BLOCK: usize = Format::Q8_0.block_len();

/// The caches of a graph.
#[derive(Debug, Clone)]
pub struct Caches {
    layers: Vec<LayerCache>,
    format: CacheFormat,
    len: usize,
}

#[derive(Debug, Clone)]
struct LayerCache {
    width: usize,
    window: Option<usize>,
    /// The position of the first row that is kept.
    first: usize,
    keys: Rows,
    values: Rows,
}

/// Rows of keys or of values.
#[derive(Debug, Clone)]
enum Rows {
    F32(Vec<f32>),
    F16(Vec<Half>),
    Q8 { quants: Vec<i8>, scales: Vec<f32> },
}

/// Rows of keys or of values, to read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stored<'a> {
    F32(&'a [f32]),
    F16(&'a [Half]),
    /// Rows of whole blocks of signed bytes, and a scale for each block.
    Q8 {
        quants: &'a [i8],
        scales: &'a [f32],
    },
}

impl Caches {
    /// Rows that a layer with a window may keep besides those of its window.
    pub const MOST_USELESS_ROWS: usize = 2 * SET_BACK;

    /// Empty caches for a graph. Graphs of one model, whatever rows they compute, share them.
    pub fn new(graph: &Graph, format: CacheFormat) -> Self {
        let empty = |info: &CacheInfo| LayerCache {
            width: info.width() as usize,
            window: info.window.map(|window| window as usize),
            first: 0,
            keys: Rows::new(format),
            values: Rows::new(format),
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

    /// Forgets everything after the first `len` tokens, and everything if a sliding layer no longer has the rows that the
    /// next token would see. What a step left behind when it failed goes too.
    pub fn truncate(&mut self, len: usize) {
        let len = self.len.min(len);
        let lost = |layer: &LayerCache| layer.first > layer.needed(len);
        self.len = if self.layers.iter().any(lost) { 0 } else { len };
        for layer in &mut self.layers {
            if self.len == 0 {
                layer.first = 0;
            }
            let rows = self.len - layer.first;
            layer.keys.truncate(rows, layer.width);
            layer.values.truncate(rows, layer.width);
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.layers.iter().map(|layer| layer.keys.bytes() + layer.values.bytes()).sum()
    }

    /// Bytes that `rows` more tokens add.
    pub(crate) fn growth(&self, rows: usize) -> u64 {
        let bytes = match self.format {
            CacheFormat::F32 => 4,
            CacheFormat::F16 => 2,
            CacheFormat::Q8 => 1,
        };
        self.layers.iter().map(|layer| 2 * bytes * layer.width as u64 * rows as u64).sum()
    }

    /// Counts the rows of a finished step, and drops those that no window reaches any more.
    pub(crate) fn advance(&mut self, rows: usize) {
        self.len += rows;
        for layer in &mut self.layers {
            let keep = layer.needed(self.len.saturating_sub(SET_BACK));
            // A conversation that was set back may need less than was dropped before. Moving rows costs as much as they are
            // many, so it is done once for many useless ones.
            let useless = keep.saturating_sub(layer.first);
            if useless >= SET_BACK {
                layer.keys.drop_front(useless, layer.width);
                layer.values.drop_front(useless, layer.width);
                layer.first = keep;
            }
        }
    }

    /// Appends the keys and values of a step's rows.
    pub(crate) fn store(&mut self, cache: Cache, keys: &[f32], values: &[f32]) -> Result<(), FormatError> {
        let layer = &mut self.layers[cache.index()];
        layer.keys.append(keys, layer.width)?;
        layer.values.append(values, layer.width)
    }

    /// The keys and values of a layer, and the position of the first.
    pub(crate) fn layer(&self, cache: Cache) -> (Stored<'_>, Stored<'_>, usize) {
        let layer = &self.layers[cache.index()];
        (layer.keys.stored(), layer.values.stored(), layer.first)
    }
}

impl LayerCache {
    /// The first position that a token at `position` or after it sees.
    fn needed(&self, position: usize) -> usize {
        self.window.map_or(0, |window| (position + 1).saturating_sub(window))
    }
}

impl Rows {
    fn new(format: CacheFormat) -> Self {
        match format {
            CacheFormat::F32 => Self::F32(Vec::new()),
            CacheFormat::F16 => Self::F16(Vec::new()),
            CacheFormat::Q8 => Self::Q8 { quants: Vec::new(), scales: Vec::new() },
        }
    }

    fn stored(&self) -> Stored<'_> {
        match self {
            Self::F32(values) => Stored::F32(values),
            Self::F16(values) => Stored::F16(values),
            Self::Q8 { quants, scales } => Stored::Q8 { quants, scales },
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::F32(values) => 4 * values.capacity(),
            Self::F16(values) => 2 * values.capacity(),
            Self::Q8 { quants, scales } => quants.capacity() + 4 * scales.capacity(),
        }
    }

    fn truncate(&mut self, rows: usize, width: usize) {
        match self {
            Self::F32(values) => values.truncate(rows * width),
            Self::F16(values) => values.truncate(rows * width),
            Self::Q8 { quants, scales } => {
                quants.truncate(rows * width.next_multiple_of(BLOCK));
                scales.truncate(rows * width.div_ceil(BLOCK));
            }
        }
    }

    fn drop_front(&mut self, rows: usize, width: usize) {
        match self {
            Self::F32(values) => drop(values.drain(..rows * width)),
            Self::F16(values) => drop(values.drain(..rows * width)),
            Self::Q8 { quants, scales } => {
                quants.drain(..rows * width.next_multiple_of(BLOCK));
                scales.drain(..rows * width.div_ceil(BLOCK));
            }
        }
    }

    /// Rounds as the reference's caches do: by the encoders of files.
    fn append(&mut self, rows: &[f32], width: usize) -> Result<(), FormatError> {
        match self {
            Self::F32(values) => {
                reserve(values, rows.len());
                values.extend_from_slice(rows);
            }
            Self::F16(values) => {
                reserve(values, rows.len());
                let mut bytes = [0; 2 * BLOCK];
                for rows in rows.chunks(BLOCK) {
                    let bytes = &mut bytes[..2 * rows.len()];
                    Format::F16.encode(rows, bytes)?;
                    values.extend(bytes.as_chunks().0.iter().map(|half| Half(u16::from_le_bytes(*half))));
                }
            }
            Self::Q8 { quants, scales } => {
                reserve(quants, rows.len() / width * width.next_multiple_of(BLOCK));
                reserve(scales, rows.len() / width * width.div_ceil(BLOCK));
                // A row that is no multiple of a block ends in a block of its own, filled up with zeros.
                for block in rows.chunks(width).flat_map(|row| row.chunks(BLOCK)) {
                    let (mut whole, mut bytes) = ([0.0; BLOCK], [0; Format::Q8_0.block_bytes()]);
                    whole[..block.len()].copy_from_slice(block);
                    Format::Q8_0.encode(&whole, &mut bytes)?;
                    scales.push(crate::float::half_to_f32(u16::from_le_bytes([bytes[0], bytes[1]])));
                    quants.extend(bytes[2..].iter().map(|&quant| quant as i8));
                }
            }
        }
        Ok(())
    }
}

/// Room for many steps at once where there is memory for it, else for this one, which was checked beforehand.
fn reserve<T>(stored: &mut Vec<T>, more: usize) {
    if stored.try_reserve(more).is_err() {
        stored.reserve_exact(more);
    }
}
