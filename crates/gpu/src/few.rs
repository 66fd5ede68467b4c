//! How a product of a few rows is divided, so that a thread decodes a weight once for all rows.
//!
//! What limits these products is neither memory nor arithmetic, but how many workgroups run at the same time, so the tiles are
//! chosen by the number of workgroups. Where the consumer adds partial sums, there are as many as it adds.

use rullama_gguf::Format;

use crate::{
    Fragment, KernelSpec,
    lower::has_integer_quants,
    tuning::{FEW_TILES, FEW_WEIGHTS, FEW_WIDTH, FEWEST_ROWS, MOST_DECODED_ROWS},
};

/// The most rows of a workgroup.
const MOST_ROWS: u32 = 8;

/// What the choice of tiles depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FewProduct {
    pub(crate) format: Format,
    pub(crate) width: u32,
    pub(crate) outputs: u32,
    pub(crate) rows: u32,
    /// Whether gate and up are computed together.
    pub(crate) paired: bool,
    /// The maximum number of partial sums that its consumer can add.
    pub(crate) most_partial_sums: u32,
}

/// The constants of `linear_few`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FewTiles {
    /// Threads per workgroup.
    pub lanes: u32,
    /// Threads that share rows of the weight.
    pub parts: u32,
    /// Rows of the weight that a thread multiplies with.
    pub together: u32,
    /// Chunks of a row of the weight.
    pub chunks: u32,
    /// Chunks of it that a workgroup computes: fewer than all are partial sums.
    pub span: u32,
    /// Chunks of x that are in workgroup memory at a time.
    pub piece: u32,
}

impl FewTiles {
    /// Whether the kernel reads this format: those whose quants are whole numbers.
    pub fn fits(format: Format) -> bool {
        has_integer_quants(format)
    }

    /// The tiles for a product on a device with subgroups of this size, if this kernel is faster than that for single rows.
    pub(crate) fn choose(product: FewProduct, subgroup: Option<u32>, workgroup_memory: u32) -> Option<Self> {
        let FewProduct { format, width, outputs, rows, paired, most_partial_sums } = product;
        let subgroup = subgroup?;
        let weights = u64::from(width) * u64::from(outputs) * if paired { 2 } else { 1 };
        let is_faster = (FEWEST_ROWS..=MOST_DECODED_ROWS).contains(&rows)
            && width >= FEW_WIDTH
            && (most_partial_sums > 1 || weights > FEW_WEIGHTS);
        if !is_faster || !width.is_multiple_of(32) || !Self::fits(format) {
            return None;
        }
        let chunks = width / 32;
        // With as many partial sums as there can be.
        let cut = |(lanes, parts, together, piece)| {
            let splits = (1..=most_partial_sums).rev().filter(|&splits| chunks.is_multiple_of(splits));
            let span = splits.map(|splits| chunks / splits).find(|span| span.is_multiple_of(piece))?;
            let few = Self { lanes, parts, together, chunks, span, piece };
            (parts <= subgroup && few.workgroup_memory(rows) <= workgroup_memory).then_some(few)
        };
        let groups = |few: &Self| few.workgroups(outputs, paired);
        let all = || FEW_TILES.into_iter().filter_map(|(tiles, fewest)| Some((cut(tiles)?, fewest)));
        all()
            .find(|(few, fewest)| groups(few) >= *fewest)
            .or_else(|| all().max_by_key(|(few, _)| groups(few)))
            .map(|(few, _)| few)
    }

    /// Outputs of a workgroup.
    fn outputs(&self, paired: bool) -> u32 {
        self.lanes / self.parts * self.together / if paired { 2 } else { 1 }
    }

    /// Partial sums of each output.
    pub fn partial_sums(&self) -> u32 {
        self.chunks / self.span
    }

    /// Rows of x of a workgroup, in a step of so many.
    pub fn rows(rows: u32) -> u32 {
        rows.div_ceil(rows.div_ceil(MOST_ROWS))
    }

    /// Workgroups for this many outputs of the same rows.
    pub fn workgroups(&self, outputs: u32, paired: bool) -> u32 {
        outputs.div_ceil(self.outputs(paired)) * self.partial_sums()
    }

    /// The grid for this many rows and outputs.
    pub fn grid(&self, rows: u32, outputs: u32, paired: bool) -> [u32; 3] {
        [rows.div_ceil(Self::rows(rows)), self.workgroups(outputs, paired), 1]
    }

    /// Bytes of workgroup memory for so many rows.
    pub fn workgroup_memory(&self, rows: u32) -> u32 {
        16 * 8 * Self::rows(rows) * (self.piece + 1)
    }

    /// The recipe with these constants, for so many rows, on a device with subgroups of this size.
    #[must_use]
    pub fn complete(&self, spec: KernelSpec, rows: u32, subgroup: u32) -> KernelSpec {
        spec.with(Fragment::PartsSubgroup)
            .with(Fragment::PlainEntry)
            .constant("SUBGROUP", subgroup)
            .constant("LANES", self.lanes)
            .constant("PARTS", self.parts)
            .constant("TOGETHER", self.together)
            .constant("ROWS", Self::rows(rows))
            .constant("CHUNKS", self.chunks)
            .constant("SPAN", self.span)
            .constant("PIECE", self.piece)
    }
}
