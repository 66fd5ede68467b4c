//! How the product of a few rows is divided among workgroups and threads, by its shape: `linear_few`.
//!
//! Each thread multiplies four rows of the weight with all rows of x. What limits a large GPU then is arithmetic and the
//! number of workgroups, so that narrow products are split along the width where their consumer adds partial sums.

use crate::{Fragment, KernelSpec, tuning::MOST_WORKGROUP_MEMORY};

pub(crate) fn tune(at: usize, or: u32) -> u32 {
    std::env::var("FEW").ok().and_then(|t| t.split(',').nth(at).and_then(|v| v.parse().ok())).unwrap_or(or)
}

/// Rows of the weight that a thread multiplies with.
const COLUMNS: u32 = 4;

/// Bytes of a chunk of 32 values of x.
const CHUNK_BYTES: u32 = 128;

/// A product of a few rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FewProduct {
    pub(crate) width: u32,
    pub(crate) outputs: u32,
    pub(crate) rows: u32,
    /// Whether each output has a gate and an up.
    pub(crate) paired: bool,
    /// Whether its only consumer adds partial sums.
    pub(crate) may_split: bool,
}

/// The constants of `linear_few`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FewRows {
    /// Rows of x that a workgroup computes.
    rows: u32,
    /// Threads that share four columns.
    parts: u32,
    /// Chunks of a split of the width.
    chunks: u32,
    /// Chunks of x in workgroup memory.
    piece: u32,
    /// Times that a workgroup takes new columns with the x it has staged.
    tiles: u32,
    splits: u32,
    paired: bool,
}

impl FewRows {
    pub(crate) fn new(product: FewProduct, workgroup_memory: u32, subgroup: Option<u32>) -> Self {
        let FewProduct { width, outputs, rows, paired, may_split } = product;
        let all = width / 32;
        let rows = if rows <= 4 { 4 } else { 8 };
        // Without subgroups, threads add up through workgroup memory: two sums of each, with gaps.
        let other = if subgroup.is_some() { 0 } else { 8 * (tune(0, 256) + tune(0, 256) / 4) };
        let room = (workgroup_memory.min(MOST_WORKGROUP_MEMORY) - other) / (CHUNK_BYTES * rows) / 8 * 8;
        let columns = outputs * if paired { 2 } else { 1 };
        let groups = |parts: u32| columns.div_ceil(tune(0, 256) / parts * COLUMNS);
        let most_parts = subgroup.unwrap_or(32);
        let wanted = if all <= 8 { 8 } else { tune(4, 8) };
        let splits = (1..=if may_split { tune(3, 8) } else { 1 })
            .filter(|splits| all.is_multiple_of(8 * splits))
            .find(|splits| groups(wanted) * splits >= tune(1, 192))
            .or_else(|| {
                (1..=if may_split { tune(3, 8) } else { 1 })
                    .rev()
                    .find(|splits| all.is_multiple_of(8 * splits))
            })
            .unwrap_or(1);
        let chunks = all / splits;
        let is_narrow = groups(wanted) * splits < tune(1, 192) / 2 && chunks >= 32;
        let parts = if is_narrow { 32 } else { wanted }.min(most_parts);
        let piece = room.min(chunks.next_multiple_of(8)).max(8);
        let tiles = if piece >= chunks { (groups(parts) * splits / tune(2, 396)).max(1) } else { 1 };
        Self { rows, parts, chunks, piece, tiles, splits, paired }
    }

    /// Rows that are computed together.
    pub(super) fn rows(&self) -> u32 {
        self.rows
    }

    /// Vectors of outputs that the consumer adds up.
    pub(super) fn partial_sums(&self) -> u32 {
        self.splits
    }

    pub(super) fn workgroups(&self, outputs: u32) -> u32 {
        let own = tune(0, 256) / self.parts * COLUMNS / if self.paired { 2 } else { 1 };
        outputs.div_ceil(own * self.tiles) * self.splits
    }

    /// The recipe with the fragments and constants of this shape.
    pub(crate) fn complete(&self, spec: KernelSpec, subgroup: Option<u32>) -> KernelSpec {
        let spec = match subgroup {
            Some(lanes) => spec.with(Fragment::PartsSubgroup).constant("SUBGROUP", lanes),
            None => spec.with(Fragment::PartsWorkgroup),
        };
        spec.constant("LANES", tune(0, 256))
            .constant("PARTS", self.parts)
            .constant("ROWS", self.rows)
            .constant("CHUNKS", self.chunks)
            .constant("PIECE", self.piece)
            .constant("TILES", self.tiles)
    }
}
