//! Which kernel computes a stage, with which constants, in how many workgroups. Measured numbers are in `tuning.rs`.

use rullama_gguf::Format;
use rullama_graph::{Rows, Value};

use super::{
    Count, Dispatch, Lowering, Slot,
    plain::{Planes, fragment, planes},
    stage::{Norm, PerLayer, Stage, Sum},
};
use crate::{
    Fragment, GpuError, Kernel, KernelSpec,
    params::{PerLayerParams, ResidualParams},
    tuning::{
        BUSY_WORKGROUPS, HEAD_OUTPUTS, MOST_WORKGROUP_MEMORY, NARROW_OUTPUTS, ROW_THREADS, SPLIT_K,
        STAGED_CHUNKS, most_unroll, threads_per_output,
    },
};

/// Bytes of workgroup memory that a product needs besides x: weights of splits, and partial sums; without subgroups also
/// the memory through which threads exchange values. Each at its largest.
fn other_memory(subgroup: Option<u32>) -> u32 {
    const SHARES: u32 = 4 * ROW_THREADS;
    // Two sums of every thread, with a gap after those of each output, which at least four threads share.
    const PARTS: u32 = 8 * (ROW_THREADS + ROW_THREADS / 4);
    const REDUCE: u32 = 4 * (ROW_THREADS + 16);
    if subgroup.is_some() { SHARES } else { PARTS + REDUCE }
}

/// Bytes of workgroup memory for a chunk of 32 values of x: in single precision, and in fixed point.
const FLOAT_CHUNK: u32 = 128;
const INTEGER_CHUNK: u32 = 112;

/// The widest x that a product's prologue can compute: a wider one would not fit into workgroup memory.
pub(super) fn widest_made(workgroup_memory: u32, subgroup: Option<u32>) -> u32 {
    let chunks = (workgroup_memory.min(MOST_WORKGROUP_MEMORY) - other_memory(subgroup)) / FLOAT_CHUNK - 1;
    // At most eight vectors of four values per thread.
    (32 * chunks).min(8 * 4 * ROW_THREADS)
}

impl Lowering<'_> {
    pub(super) fn stage(&mut self, stage: &Stage, next: Option<&Stage>) -> Result<(), GpuError> {
        match stage {
            Stage::Plain(index) => self.plain(*index),
            Stage::Residual { sum, out, normed } => self.residual(sum, *out, *normed),
            Stage::Linear(linear) => self.linear(linear),
            Stage::Attention(attention) => self.attention(attention, next),
            Stage::PerLayer(per_layer) => self.per_layer(per_layer),
        }
    }

    fn residual(&mut self, sum: &Sum, out: Value, normed: Option<(Norm, Value)>) -> Result<(), GpuError> {
        let target = self.target;
        let graph = target.graph;
        let shape = graph.value(out).shape;
        let vector = |weight| target.manifest.vector(graph, weight);
        let partial_sums = self.partial_sums.get(&sum.branch).copied().unwrap_or(1);
        let branch = if partial_sums > 1 { self.place(sum.branch)?.slot() } else { self.whole(sum.branch)? };
        let mut buffers = vec![
            ("base", self.whole(sum.base)?),
            ("branch", branch),
            ("vectors", Slot::Vectors),
            ("y", self.claim(out)),
        ];
        let mut spec =
            KernelSpec::new(Kernel::Residual).with(Fragment::PlainEntry).with_reduce(target.subgroup);
        spec = match normed {
            Some((_, value)) => {
                buffers.push(("normed", self.claim(value)));
                spec.with(Fragment::Normed)
            }
            None => spec.with(Fragment::SumOnly),
        };
        let params = ResidualParams {
            width: shape.width,
            branch_norm_at: vector(sum.branch_norm.weight),
            scale_at: sum.scale.map_or(0, vector),
            norm_at: normed.map_or(0, |(norm, _)| vector(norm.weight)),
            branch_eps: sum.branch_norm.eps,
            eps: normed.map_or(0.0, |(norm, _)| norm.eps),
        };
        let spec = spec
            .constant("LANES", ROW_THREADS)
            .constant("BRANCH", partial_sums)
            .constant("SCALED", sum.scale.is_some().into())
            .constant("FOURS", (shape.width / 4).div_ceil(ROW_THREADS));
        let workgroups = [Count::Fixed(1), Count::Rows(shape.rows), Count::Fixed(1)];
        let (what, uniforms) = (self.name(out), vec![params.into()]);
        self.push(Dispatch { what, spec, uniforms, buffers, workgroups, weight_bytes: 0 });
        Ok(())
    }

    fn per_layer(&mut self, per_layer: &PerLayer) -> Result<(), GpuError> {
        let target = self.target;
        let graph = target.graph;
        let &PerLayer { projected, before, norm, group, table, scale, by, out } = per_layer;
        let (packed_index, _) = target.manifest.place(graph, table);
        let packed = &target.manifest.packed[packed_index];
        let groups = graph.value(out).shape.width / group;
        let Planes { plane_at, plane_words } = planes(&packed.shards[0], packed.packing.plane_words);
        let params = PerLayerParams {
            plane_at,
            plane_words,
            group,
            groups,
            norm_at: target.manifest.vector(graph, norm.weight),
            eps: norm.eps,
            before,
            scale,
            by,
        };
        let mut buffers = vec![("projected", self.whole(projected)?), ("vectors", Slot::Vectors)];
        buffers.extend(self.table(packed_index, 0));
        buffers.push(("y", self.claim(out)));
        let spec = KernelSpec::new(Kernel::PerLayer)
            .with(Fragment::PlainEntry)
            .with_reduce(target.subgroup)
            .with(Fragment::Planes)
            .with(fragment(packed.packing.format)?)
            .constant("LANES", 64);
        let workgroups = [Count::Fixed(groups), Count::Rows(Rows::Step), Count::Fixed(1)];
        let (what, uniforms) = (self.name(out), vec![params.into()]);
        let weight_bytes = 4 * u64::from(packed.packing.row_words()) * u64::from(self.shape.rows);
        self.push(Dispatch { what, spec, uniforms, buffers, workgroups, weight_bytes });
        Ok(())
    }
}

/// Whether the quants of a format are whole numbers.
fn has_bytes(format: Format) -> bool {
    use Format as F;
    matches!(
        format,
        F::Q4_0
            | F::Q4_1
            | F::Q5_0
            | F::Q5_1
            | F::Q8_0
            | F::Q2_K
            | F::Q3_K
            | F::Q4_K
            | F::Q5_K
            | F::Q6_K
            | F::MXFP4
    )
}

/// How the product of one row or a few is divided among workgroups and threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowShape {
    /// Whether x is in fixed point.
    integer: bool,
    /// Threads that share an output.
    parts: u32,
    rows: u32,
    /// Chunks of a row.
    chunks: u32,
    /// Chunks of x staged at once.
    piece: u32,
    /// Times that a workgroup takes new outputs with the x it has staged.
    tiles: u32,
    /// Chunks that a thread loads at once.
    unroll: u32,
    /// Split-K: each piece has workgroups of its own, which store partial sums.
    split_k: bool,
}

/// The product of one row or a few.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowProduct {
    pub(crate) format: Format,
    pub(crate) width: u32,
    pub(crate) outputs: u32,
    pub(crate) rows: u32,
    /// Whether the prologue computes x.
    pub(crate) made: bool,
    /// The most partial sums that its consumer can add up.
    pub(crate) most_partial_sums: u32,
}

impl RowShape {
    pub(crate) fn new(product: RowProduct, workgroup_memory: u32, subgroup: Option<u32>) -> Self {
        let RowProduct { format, width, outputs, rows, made, most_partial_sums } = product;
        let chunks = width / 32;
        let integer = subgroup.is_some_and(|lanes| lanes >= 8) && has_bytes(format);
        let chunk_bytes = if integer { INTEGER_CHUNK } else { FLOAT_CHUNK };
        let room =
            (workgroup_memory.min(MOST_WORKGROUP_MEMORY) - other_memory(subgroup)) / chunk_bytes / rows;
        // A thread loads several of its chunks at once.
        let unroll = |lane_chunks: u32, most| {
            (1..=most).rev().find(|&unroll| lane_chunks.is_multiple_of(unroll)).unwrap_or(1)
        };
        let split = SPLIT_K.into_iter().find(|&(piece, _)| {
            (2..=most_partial_sums).contains(&(chunks / piece))
                && chunks.is_multiple_of(piece)
                && piece < room
        });
        if let Some((piece, parts)) = split {
            let parts = subgroup.map_or(parts, |lanes| parts.min(lanes));
            let unroll = unroll(piece / parts, most_unroll(chunks, true));
            return Self { integer, parts, rows, chunks, piece, tiles: 1, unroll, split_k: true };
        }
        let wanted = threads_per_output(chunks, outputs);
        // Threads of one subgroup need no barrier to add up.
        let wanted = subgroup.map_or(wanted, |lanes| wanted.min(lanes));
        // Best are equal pieces that give all threads the same number of chunks. What the prologue computes is one piece.
        let most = if made { room - 1 } else { (room - 1).min(STAGED_CHUNKS) };
        let pieces = (1..=if made { 1 } else { 8 })
            .filter(|&pieces| chunks.is_multiple_of(pieces))
            .map(|pieces| chunks / pieces);
        // Where outputs are few, less work per thread counts for more than equal work.
        let even =
            pieces.filter(|_| outputs > NARROW_OUTPUTS).filter(|&piece| piece <= most).find_map(|piece| {
                let parts = [wanted, wanted / 2, wanted / 4]
                    .into_iter()
                    .find(|&parts| piece.is_multiple_of(parts.max(1)))?;
                (parts >= 4).then_some((piece, parts))
            });
        let (piece, parts) = even.unwrap_or((chunks.min(most), wanted));
        // Every workgroup computes x again, so there are no more workgroups than a large GPU runs at the same time.
        let busy = if outputs < HEAD_OUTPUTS { BUSY_WORKGROUPS } else { 2 * BUSY_WORKGROUPS };
        let tiles = if piece == chunks { (outputs / (ROW_THREADS / parts)).div_ceil(busy).max(1) } else { 1 };
        let unroll = unroll((piece / parts).max(1), most_unroll(chunks, false));
        Self { integer, parts, rows, chunks, piece, tiles, unroll, split_k: false }
    }

    /// Rows that are computed together.
    pub(super) fn rows(&self) -> u32 {
        self.rows
    }

    pub(super) fn workgroups(&self, outputs: u32) -> u32 {
        outputs.div_ceil(ROW_THREADS / self.parts * self.tiles) * self.partial_sums()
    }

    /// Vectors of outputs that the consumer adds up.
    pub(super) fn partial_sums(&self) -> u32 {
        if self.split_k { self.chunks / self.piece } else { 1 }
    }

    /// The recipe with the fragments and constants of this shape.
    pub(crate) fn complete(&self, spec: KernelSpec, subgroup: Option<u32>) -> KernelSpec {
        let arithmetic = if self.integer { Fragment::IntegerArithmetic } else { Fragment::FloatArithmetic };
        let spec = match subgroup {
            Some(lanes) => spec.with(Fragment::PartsSubgroup).constant("SUBGROUP", lanes),
            None => spec.with(Fragment::PartsWorkgroup),
        };
        spec.with(arithmetic)
            .constant("LANES", ROW_THREADS)
            .constant("PARTS", self.parts)
            .constant("ROWS", self.rows)
            .constant("CHUNKS", self.chunks)
            .constant("PIECE", self.piece)
            .constant("TILES", self.tiles)
            .constant("UNROLL", self.unroll)
            .constant("APART", self.split_k.into())
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::workgroup_bytes, *};

    /// wgpu does not ask, and browsers refuse.
    #[test]
    fn products_of_few_rows_have_the_workgroup_memory_they_need() {
        let made = |spec: KernelSpec, subgroup| {
            let spec = spec.with(Fragment::ResidualInput).with_reduce(subgroup).with(Fragment::Kept);
            spec.constant("BRANCH", 1).constant("SCALED", 1).constant("NORMED", 1)
        };
        // Widths of the family's products, and awkward ones.
        let widths =
            [256, 704, 1536, 2048, 2560, 2816, 3264, 3808, 3840, 4096, 5376, 6144, 10_240, 12_288, 21_504];
        for workgroup_memory in [16 << 10, 32 << 10, 48 << 10] {
            for subgroup in [None, Some(4), Some(32)] {
                for width in widths {
                    for rows in [1, 2, 3, 5, 6, 8] {
                        for (outputs, on_the_way) in [(256, false), (2560, true), (6144, false)] {
                            let on_the_way =
                                on_the_way && rows == 1 && width <= widest_made(workgroup_memory, subgroup);
                            for format in [Format::Q4_K, Format::BF16] {
                                let product = RowProduct {
                                    format,
                                    width,
                                    outputs,
                                    rows,
                                    made: on_the_way,
                                    most_partial_sums: if rows == 1 && outputs == 256 { 32 } else { 1 },
                                };
                                let shape = RowShape::new(product, workgroup_memory, subgroup);
                                let spec = KernelSpec::new(Kernel::LinearRow)
                                    .with(Fragment::LinearParams)
                                    .with(Fragment::Planes)
                                    .with(fragment(format).unwrap())
                                    .with(Fragment::Store)
                                    .with(Fragment::Dense)
                                    .with(Fragment::PlainEntry);
                                let spec = match on_the_way {
                                    true => made(spec, subgroup),
                                    false => spec.with(Fragment::PlainInput),
                                };
                                let spec = shape.complete(spec, subgroup);
                                let needed = workgroup_bytes(&spec);
                                assert!(
                                    needed <= workgroup_memory,
                                    "{spec}: {needed} of {workgroup_memory} bytes"
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}
