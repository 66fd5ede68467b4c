//! Chooses the kernel of a stage, its constants and its grid. Measured numbers are in `tuning.rs`.

use rullama_gguf::Format;
use rullama_graph::{Rows, Value};

use super::{
    BufferRef, Count, Dispatch, Lowering,
    plain::{PlaneParams, fragment, plane_params},
    stage::{Norm, PerLayer, Stage, Sum},
};
use crate::{
    Fragment, GpuError, Kernel, KernelSpec,
    params::{PerLayerParams, ResidualParams},
    tuning::{
        FEWEST_THREADS_PER_OUTPUT, MOST_PIECES_OF_X, MOST_WORKGROUP_MEMORY, NARROW_OUTPUTS,
        PER_LAYER_THREADS, ROW_THREADS, SEVERAL_ROWS_WORKGROUPS, SPLIT_K, STAGED_CHUNKS, most_row_workgroups,
        most_unroll, wanted_threads_per_output,
    },
};

/// Bytes of workgroup memory that a product needs besides x: the factors that merge attention's splits, and the sums of its
/// threads; without subgroups also the memory through which threads exchange values. Each at its largest.
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

/// The maximum width of an x that a product's prologue can compute: a wider one would not fit into workgroup memory.
pub(super) fn widest_prologue(workgroup_memory: u32, subgroup: Option<u32>) -> u32 {
    let chunks = (workgroup_memory.min(MOST_WORKGROUP_MEMORY) - other_memory(subgroup)) / FLOAT_CHUNK - 1;
    // `input/residual.wgsl` has names for at most eight vectors of four values per thread.
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
        let branch =
            if partial_sums > 1 { self.place(sum.branch)?.buffer() } else { self.own_buffer(sum.branch)? };
        let mut buffers = vec![
            ("base", self.own_buffer(sum.base)?),
            ("branch", branch),
            ("vectors", BufferRef::Vectors),
            ("y", self.allocate(out)),
        ];
        let mut spec =
            KernelSpec::new(Kernel::Residual).with(Fragment::PlainEntry).with_reduce(target.subgroup);
        spec = match normed {
            Some((_, value)) => {
                buffers.push(("normed", self.allocate(value)));
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
        let (label, uniforms) = (self.name(out), vec![params.into()]);
        self.push(Dispatch { label, spec, uniforms, buffers, workgroups, weight_bytes: 0 });
        Ok(())
    }

    fn per_layer(&mut self, per_layer: &PerLayer) -> Result<(), GpuError> {
        let target = self.target;
        let graph = target.graph;
        let &PerLayer { projected, before, norm, group, table, scale, by, out } = per_layer;
        let (packed_index, _) = target.manifest.place(graph, table);
        let packed = &target.manifest.packed[packed_index];
        let groups = graph.value(out).shape.width / group;
        let PlaneParams { plane_at, plane_words } =
            plane_params(&packed.shards[0], packed.packing.plane_words);
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
        let mut buffers = vec![("projected", self.own_buffer(projected)?), ("vectors", BufferRef::Vectors)];
        buffers.extend(self.table(packed_index, 0));
        buffers.push(("y", self.allocate(out)));
        let spec = KernelSpec::new(Kernel::PerLayer)
            .with(Fragment::PlainEntry)
            .with_reduce(target.subgroup)
            .with(Fragment::Planes)
            .with(fragment(packed.packing.format)?)
            .constant("LANES", PER_LAYER_THREADS);
        let workgroups = [Count::Fixed(groups), Count::Rows(Rows::Step), Count::Fixed(1)];
        let (label, uniforms) = (self.name(out), vec![params.into()]);
        let weight_bytes = 4 * u64::from(packed.packing.row_words()) * u64::from(self.shape.rows);
        self.push(Dispatch { label, spec, uniforms, buffers, workgroups, weight_bytes });
        Ok(())
    }
}

/// Whether the quants of a format are integers.
pub(crate) fn has_integer_quants(format: Format) -> bool {
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

/// How a product of few rows is divided among workgroups and threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowShape {
    /// Whether x is in fixed point.
    integer: bool,
    /// Threads that share an output.
    threads_per_output: u32,
    rows: u32,
    /// Chunks of a row.
    chunks: u32,
    /// Chunks of x that are in workgroup memory at a time.
    staged_chunks: u32,
    /// How many groups of outputs a workgroup computes one after another from the x it has staged.
    rounds: u32,
    /// Chunks that a thread loads at once.
    unroll: u32,
    /// Whether workgroups of other rows come before those of other outputs, so that they read the same weights at one time.
    rows_first: bool,
    /// Split-K: each `staged_chunks` chunks have workgroups of their own, which store partial sums.
    split_k: bool,
}

/// What the choice of a kernel for few rows depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowProduct {
    pub(crate) format: Format,
    pub(crate) width: u32,
    pub(crate) outputs: u32,
    /// Rows of the step.
    pub(crate) rows: u32,
    /// Rows that a workgroup computes.
    pub(crate) rows_together: u32,
    /// Whether a prologue computes x.
    pub(crate) has_prologue: bool,
    /// The maximum number of partial sums that its consumer can add.
    pub(crate) most_partial_sums: u32,
}

impl RowShape {
    pub(crate) fn new(product: RowProduct, workgroup_memory: u32, subgroup: Option<u32>) -> Self {
        let RowProduct { format, width, outputs, has_prologue, most_partial_sums, .. } = product;
        let rows = product.rows_together;
        // Workgroups of other rows keep the device busy too.
        let row_groups = product.rows.div_ceil(rows);
        let most_workgroups = match row_groups {
            1 => most_row_workgroups(outputs),
            _ => most_row_workgroups(outputs) * SEVERAL_ROWS_WORKGROUPS / 100 / row_groups,
        };
        let rows_first = row_groups > 1;
        let rounds = |groups: u32| groups.div_ceil(most_workgroups.max(1)).max(1);
        let chunks = width / 32;
        let integer = subgroup.is_some_and(|size| size >= 8) && has_integer_quants(format);
        let chunk_bytes = if integer { INTEGER_CHUNK } else { FLOAT_CHUNK };
        let room =
            (workgroup_memory.min(MOST_WORKGROUP_MEMORY) - other_memory(subgroup)) / chunk_bytes / rows;
        // A thread loads several of its chunks at once.
        let unroll = |thread_chunks: u32, most| {
            (1..=most).rev().find(|&unroll| thread_chunks.is_multiple_of(unroll)).unwrap_or(1)
        };
        let split = SPLIT_K.into_iter().find(|&(split_chunks, _)| {
            (2..=most_partial_sums).contains(&(chunks / split_chunks))
                && chunks.is_multiple_of(split_chunks)
                && split_chunks < room
        });
        if let Some((staged_chunks, threads_per_output)) = split {
            let threads_per_output = subgroup.map_or(threads_per_output, |size| threads_per_output.min(size));
            let unroll = unroll(staged_chunks / threads_per_output, most_unroll(chunks, true));
            let groups = outputs / (ROW_THREADS / threads_per_output) * (chunks / staged_chunks);
            let (rounds, split_k) = (if row_groups > 1 { rounds(groups) } else { 1 }, true);
            return Self {
                integer,
                threads_per_output,
                rows,
                chunks,
                staged_chunks,
                rounds,
                unroll,
                rows_first,
                split_k,
            };
        }
        let wanted = wanted_threads_per_output(chunks, outputs);
        // Threads of one subgroup need no barrier to add up.
        let wanted = subgroup.map_or(wanted, |size| wanted.min(size));
        // Prefer pieces of equal size in which all threads get the same number of chunks. A prologue stages its input as one
        // piece.
        let (most, most_pieces) =
            if has_prologue { (room - 1, 1) } else { ((room - 1).min(STAGED_CHUNKS), MOST_PIECES_OF_X) };
        let pieces = (1..=most_pieces)
            .filter(|&pieces| chunks.is_multiple_of(pieces))
            .map(|pieces| chunks / pieces)
            .filter(|&piece| piece <= most);
        // With few outputs, little work per thread matters more than an even split.
        let even = pieces.filter(|_| outputs > NARROW_OUTPUTS).find_map(|piece| {
            let threads = [wanted, wanted / 2, wanted / 4]
                .into_iter()
                .find(|&threads| piece.is_multiple_of(threads.max(1)))?;
            (threads >= FEWEST_THREADS_PER_OUTPUT).then_some((piece, threads))
        });
        let (staged_chunks, threads_per_output) = even.unwrap_or((chunks.min(most), wanted));
        // Each workgroup stages x again, so there are no more workgroups than a large GPU runs at the same time.
        let groups = outputs / (ROW_THREADS / threads_per_output);
        let rounds = if staged_chunks == chunks { rounds(groups) } else { 1 };
        let unroll = unroll((staged_chunks / threads_per_output).max(1), most_unroll(chunks, false));
        let split_k = false;
        Self { integer, threads_per_output, rows, chunks, staged_chunks, rounds, unroll, rows_first, split_k }
    }

    /// Rows that are computed together.
    pub(super) fn rows(&self) -> u32 {
        self.rows
    }

    pub(super) fn rows_first(&self) -> bool {
        self.rows_first
    }

    pub(super) fn workgroups(&self, outputs: u32) -> u32 {
        outputs.div_ceil(ROW_THREADS / self.threads_per_output * self.rounds) * self.partial_sums()
    }

    /// Partial sums of each output.
    pub(super) fn partial_sums(&self) -> u32 {
        if self.split_k { self.chunks / self.staged_chunks } else { 1 }
    }

    /// The recipe with the fragments and constants of this shape.
    pub(crate) fn complete(&self, spec: KernelSpec, subgroup: Option<u32>) -> KernelSpec {
        let arithmetic = if self.integer { Fragment::IntegerArithmetic } else { Fragment::FloatArithmetic };
        let spec = match subgroup {
            Some(size) => spec.with(Fragment::PartsSubgroup).constant("SUBGROUP", size),
            None => spec.with(Fragment::PartsWorkgroup),
        };
        spec.with(arithmetic)
            .constant("LANES", ROW_THREADS)
            .constant("PARTS", self.threads_per_output)
            .constant("ROWS", self.rows)
            .constant("CHUNKS", self.chunks)
            .constant("PIECE", self.staged_chunks)
            .constant("TILES", self.rounds)
            .constant("UNROLL", self.unroll)
            .constant("ROWS_FIRST", self.rows_first.into())
            .constant("APART", self.split_k.into())
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::workgroup_bytes, *};

    /// wgpu does not check this; browsers reject such kernels.
    #[test]
    fn products_of_few_rows_have_the_workgroup_memory_they_need() {
        let with_prologue = |spec: KernelSpec, subgroup| {
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
                        for (outputs, has_prologue) in [(256, false), (2560, true), (6144, false)] {
                            let has_prologue = has_prologue
                                && rows == 1
                                && width <= widest_prologue(workgroup_memory, subgroup);
                            for format in [Format::Q4_K, Format::BF16] {
                                let product = RowProduct {
                                    format,
                                    width,
                                    outputs,
                                    rows,
                                    rows_together: rows,
                                    has_prologue,
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
                                let spec = match has_prologue {
                                    true => with_prologue(spec, subgroup),
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
