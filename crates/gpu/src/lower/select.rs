//! Which kernel computes a stage, with which constants, in how many workgroups. The one place where that is decided.

use rullama_gguf::Format;
use rullama_graph::{Rows, Value};

use super::{
    Count, Draft, GroupKey, Lowering, Place, Slot,
    plain::{expert_stride, fragment, planes},
    stage::{Epilogue, From, Input, Linear, Norm, PerLayer, Stage, Sum},
};
use crate::{Experts, Fragment, GpuError, Kernel, KernelSpec, Tiles, attention::RowAttention};

/// The lanes of most kernels: the most that WebGPU guarantees.
pub(super) const LANES: u32 = 256;

/// Bytes of workgroup memory that a product leaves for other things than x.
const OTHER_MEMORY: u32 = 1024;

/// Bytes that a chunk of 32 values of x takes there: as it is, and in fixed point.
const FLOAT_CHUNK: u32 = 128;
const INTEGER_CHUNK: u32 = 112;

/// More workgroup memory than this leaves room for too few workgroups.
const MOST_MEMORY: u32 = 48 << 10;

/// Chunks of x that are staged at once where it need not be more: as many as give each lane a few loads to wait for.
const PIECE_CHUNKS: u32 = 128;

/// The widest x that can be made on the way to a product: beyond, there would be no workgroup memory left to stage it.
pub(super) fn widest_made(workgroup_memory: u32) -> u32 {
    let chunks = (workgroup_memory.min(MOST_MEMORY) - OTHER_MEMORY) / FLOAT_CHUNK - 1;
    // At most eight vectors of four values to a lane.
    (32 * chunks).min(8 * 4 * LANES)
}

/// Workgroups of a product that are at work at once on a large GPU.
const BUSY_WORKGROUPS: u32 = 528;

/// Outputs that make no more than a few workgroups.
const FEWEST_OUTPUTS: u32 = 512;

/// Outputs that make fewer workgroups than are at work at once.
const FEW_OUTPUTS: u32 = 5000;

/// Outputs beyond which there are enough for more rounds of workgroups than one.
const MANY_OUTPUTS: u32 = 65_536;

/// Rows for which a product reads each weight once; beyond, tiles do better.
pub(crate) const FEW_ROWS: u32 = 8;

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

    fn linear(&mut self, linear: &Linear) -> Result<(), GpuError> {
        let target = self.target;
        let graph = target.graph;
        let (first, _) = linear.outputs[0];
        let info = graph.weight(first);
        let (packed_index, first_row) = target.manifest.place(graph, first);
        let packed = &target.manifest.packed[packed_index];
        let outputs: u32 = linear.outputs.iter().map(|&(weight, _)| graph.weight(weight).rows).sum();
        let slots = linear.routing.map_or(1, |routing| graph.value(routing).shape.width / 2);
        let pair = match linear.epilogue {
            Epilogue::GeluPair { up } => target.manifest.place(graph, up).1 - first_row,
            _ => 0,
        };
        let rows = linear.rows.count(self.most_rows as usize) as u32;

        // Where rows are many, those of an expert are brought together.
        let experts = linear.routing.map(|_| Experts { count: info.matrices, used: slots });
        let tiled = rows > FEW_ROWS && experts.is_none_or(|experts| experts.can_be_grouped());
        let tiles = match experts {
            Some(experts) => Tiles::for_experts(experts, rows, pair > 0),
            None => Tiles::choose(rows, outputs, pair > 0),
        };
        let kernel = if tiled { Kernel::LinearTile } else { Kernel::LinearRow };
        let mut spec = KernelSpec::new(kernel)
            .with(Fragment::LinearParams)
            .with(Fragment::Planes)
            .with(fragment(packed.packing.format)?);
        let mut buffers = Vec::new();
        let mut uniforms = Vec::new();
        // Where x is, if it is a value as it is.
        let (mut x_at, mut x_stride, mut x_slot) = (0, 0, 0);
        match linear.input {
            Input::Value(value) if self.unmerged.contains_key(&value) => {
                let parts = self.unmerged[&value];
                let RowAttention { shape, split_keys, most_splits, .. } = parts.attention;
                spec = spec
                    .with(Fragment::MergedInput)
                    .with(Fragment::Splits)
                    .constant("HEADS", shape.heads)
                    .constant("HEAD_WIDTH", shape.head_width)
                    .constant("SPLIT_KEYS", split_keys)
                    .constant("MOST_SPLITS", most_splits);
                buffers.extend([("sums", Slot::Scratch(parts.sums)), ("peaks", Slot::Scratch(parts.peaks))]);
                uniforms.push(("merged", vec![shape.mask.window.unwrap_or(0)]));
            }
            Input::Value(value) => {
                let x = self.place(value)?;
                (x_at, x_stride) = (x.at, x.stride);
                x_slot = expert_stride(graph, value, info, slots);
                if !tiled {
                    spec = spec.with(Fragment::PlainInput);
                }
                buffers.push(("x", x.slot()));
            }
            Input::Made { from, keep, norm, factor } => {
                let (sum, base) = match from {
                    From::Value(value) => (None, value),
                    From::Sum(sum) => (Some(sum), sum.base),
                };
                let base = self.whole(base)?;
                let branch = sum.map_or(Ok(base), |sum| self.whole(sum.branch))?;
                buffers.extend([("base", base), ("branch", branch), ("vectors", Slot::Vectors)]);
                spec = spec.with(Fragment::ResidualInput).with_reduce(target.subgroup);
                spec = match keep {
                    Some(value) => {
                        buffers.push(("kept", self.claim(value)));
                        spec.with(Fragment::Kept)
                    }
                    None => spec.with(Fragment::Dropped),
                };
                let scale = sum.and_then(|sum| sum.scale);
                spec = spec
                    .constant("BRANCH", sum.is_some().into())
                    .constant("SCALED", scale.is_some().into())
                    .constant("NORMED", norm.is_some().into());
                let vector = |weight| target.manifest.vector(graph, weight);
                let at = |norm: Option<Norm>| norm.map_or(0, |norm| vector(norm.weight));
                let eps = |norm: Option<Norm>| norm.map_or(0, |norm| norm.eps.to_bits());
                let branch_norm = sum.map(|sum| sum.branch_norm);
                let words = vec![
                    at(norm),
                    at(branch_norm),
                    scale.map_or(0, vector),
                    eps(norm),
                    eps(branch_norm),
                    factor.to_bits(),
                ];
                uniforms.push(("residual", words));
            }
        }

        let (mut other_at, mut other_stride) = (0, 0);
        spec = match linear.epilogue {
            Epilogue::Store => spec.with(Fragment::Store),
            Epilogue::SoftCap(_) => spec.with(Fragment::CappedStore),
            Epilogue::GeluPair { .. } => spec.with(Fragment::Gelu).with(Fragment::GeluPair),
            Epilogue::GeluOther { other, first } => {
                let place = self.place(other)?;
                (other_at, other_stride) = (place.at + first, place.stride);
                buffers.push(("other", place.slot()));
                spec.with(Fragment::Gelu).with(Fragment::GeluOther)
            }
        };
        spec = match (linear.routing, experts) {
            (Some(routing), Some(experts)) if tiled => {
                let key = GroupKey { routing, experts, tile_rows: tiles.rows };
                buffers.push(("groups", self.group(key)?));
                spec.with(Fragment::Grouped)
            }
            (Some(routing), _) => {
                buffers.push(("routing", self.whole(routing)?));
                spec.with(Fragment::Routed)
            }
            (None, _) => spec.with(if tiled { Fragment::InOrder } else { Fragment::Dense }),
        };

        // Products lie side by side in one buffer.
        let y_width = linear.beside.map_or(outputs * slots, |beside| beside.width);
        let scratch = match linear.beside {
            Some(beside) if beside.column > 0 => self.place(beside.first)?.scratch,
            _ => self.claim_rows(linear.rows, y_width),
        };
        let y_at = linear.beside.map_or(0, |beside| beside.column);
        let mut at = y_at;
        for &(weight, value) in &linear.outputs {
            self.places.insert(value, Place { scratch, at, stride: y_width });
            at += graph.weight(weight).rows * slots;
        }
        buffers.push(("y", Slot::Scratch(scratch)));

        let workgroups;
        if tiled {
            spec = tiles.constants(spec);
            let [x, ..] = tiles.grid(rows, outputs);
            let y = match experts {
                Some(experts) => Count::Tiles { rows: linear.rows, experts, tile_rows: tiles.rows },
                None => Count::Blocks(linear.rows, tiles.rows),
            };
            workgroups = [Count::Fixed(x), y, Count::Fixed(1)];
        } else {
            let together = if linear.routing.is_some() { 1 } else { rows };
            let made = match linear.input {
                Input::Value(value) => self.unmerged.contains_key(&value),
                Input::Made { .. } => true,
            };
            let product = RowProduct {
                format: packed.packing.format,
                width: info.width,
                outputs,
                rows: together,
                made,
            };
            let shape = RowShape::new(product, target.workgroup_memory, target.subgroup);
            spec = shape.complete(spec.with(Fragment::PlainEntry), target.subgroup);
            let x = shape.workgroups(outputs);
            workgroups = [Count::Fixed(x), Count::Blocks(linear.rows, together), Count::Fixed(slots)];
        }
        let cap = if let Epilogue::SoftCap(cap) = linear.epilogue { cap } else { 0.0 };
        // Rows of each matrix of the packed tensor; where there is one matrix it does not matter.
        let matrix_rows = info.tensor_rows;
        // Matrices that are read: in tiles, by all rows together.
        let matrices = if tiled { (rows * slots).min(info.matrices) } else { slots };
        let what = linear.outputs.iter().map(|&(_, value)| self.name(value)).collect::<Vec<_>>().join(" + ");
        for (index, shard) in packed.shards.iter().enumerate() {
            let shard_rows = shard.rows.end - shard.rows.start;
            let mut params = planes(shard, packed.packing.plane_words);
            params.extend([info.width, outputs, first_row, matrix_rows]);
            params.extend([shard.rows.start as u32, shard_rows as u32, pair]);
            params.extend([x_at, x_stride, x_slot, y_at, y_width, 2 * slots, other_at, other_stride]);
            params.extend([target.manifest.factor(graph, first).to_bits(), cap.to_bits()]);
            let mut uniforms = uniforms.clone();
            uniforms.push(("params", params));
            let mut buffers = buffers.clone();
            buffers.push(("weight", Slot::Shard { packed: packed_index, shard: index }));
            let weight_rows = u64::from(outputs * matrices) * if pair > 0 { 2 } else { 1 };
            let weight_bytes = weight_rows.min(shard_rows) * 4 * u64::from(packed.packing.row_words());
            let (what, spec) = (what.clone(), spec.clone());
            self.push(Draft { what, spec, uniforms, buffers, workgroups, weight_bytes });
        }
        Ok(())
    }

    fn residual(&mut self, sum: &Sum, out: Value, normed: Option<(Norm, Value)>) -> Result<(), GpuError> {
        let target = self.target;
        let graph = target.graph;
        let shape = graph.value(out).shape;
        let vector = |weight| target.manifest.vector(graph, weight);
        let mut buffers = vec![
            ("base", self.whole(sum.base)?),
            ("branch", self.whole(sum.branch)?),
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
        let params = vec![
            shape.width,
            vector(sum.branch_norm.weight),
            sum.scale.map_or(0, vector),
            normed.map_or(0, |(norm, _)| vector(norm.weight)),
            sum.branch_norm.eps.to_bits(),
            normed.map_or(0, |(norm, _)| norm.eps.to_bits()),
        ];
        let spec = spec
            .constant("LANES", LANES)
            .constant("SCALED", sum.scale.is_some().into())
            .constant("FOURS", (shape.width / 4).div_ceil(LANES));
        let workgroups = [Count::Fixed(1), Count::Rows(shape.rows), Count::Fixed(1)];
        let (what, uniforms) = (self.name(out), vec![("params", params)]);
        self.push(Draft { what, spec, uniforms, buffers, workgroups, weight_bytes: 0 });
        Ok(())
    }

    fn per_layer(&mut self, per_layer: &PerLayer) -> Result<(), GpuError> {
        let target = self.target;
        let graph = target.graph;
        let &PerLayer { projected, before, norm, group, table, scale, by, out } = per_layer;
        let (packed_index, _) = target.manifest.place(graph, table);
        let packed = &target.manifest.packed[packed_index];
        let groups = graph.value(out).shape.width / group;
        let mut params = planes(&packed.shards[0], packed.packing.plane_words);
        params.extend([group, groups, target.manifest.vector(graph, norm.weight)]);
        params.extend([norm.eps, before, scale, by].map(f32::to_bits));
        let buffers = vec![
            ("weight", Slot::Shard { packed: packed_index, shard: 0 }),
            ("projected", self.whole(projected)?),
            ("tokens", Slot::Tokens),
            ("vectors", Slot::Vectors),
            ("y", self.claim(out)),
        ];
        let spec = KernelSpec::new(Kernel::PerLayer)
            .with(Fragment::PlainEntry)
            .with_reduce(target.subgroup)
            .with(Fragment::Planes)
            .with(fragment(packed.packing.format)?)
            .constant("LANES", 64);
        let workgroups = [Count::Fixed(groups), Count::Rows(Rows::Step), Count::Fixed(1)];
        let (what, uniforms) = (self.name(out), vec![("params", params)]);
        let weight_bytes = 4 * u64::from(packed.packing.row_words()) * u64::from(self.most_rows);
        self.push(Draft { what, spec, uniforms, buffers, workgroups, weight_bytes });
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

/// How a product of one row or a few is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowShape {
    /// Whether x is in fixed point.
    integer: bool,
    /// Lanes that share an output.
    parts: u32,
    rows: u32,
    /// Chunks of a row.
    chunks: u32,
    /// Chunks of x staged at once.
    piece: u32,
    /// Times that a workgroup takes new outputs with the x it has staged.
    tiles: u32,
    /// Chunks that a lane asks for at once. More cost registers, and with them workgroups at work at the same time.
    unroll: u32,
}

/// What a product of one row or a few is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowProduct {
    pub(crate) format: Format,
    pub(crate) width: u32,
    pub(crate) outputs: u32,
    pub(crate) rows: u32,
    /// Whether x is made on the way.
    pub(crate) made: bool,
}

impl RowShape {
    pub(crate) fn new(product: RowProduct, workgroup_memory: u32, subgroup: Option<u32>) -> Self {
        let RowProduct { format, width, outputs, rows, made } = product;
        let chunks = width / 32;
        let integer = subgroup.is_some_and(|lanes| lanes >= 8) && has_bytes(format);
        let chunk_bytes = if integer { INTEGER_CHUNK } else { FLOAT_CHUNK };
        let room = (workgroup_memory.min(MOST_MEMORY) - OTHER_MEMORY) / chunk_bytes / rows;
        // A lane should have a few chunks of its row, and a workgroup about 16 KiB of weights.
        let target = match chunks {
            0..=8 => 8,
            // So few that each lane may as well have less to do.
            _ if outputs <= FEWEST_OUTPUTS => 32,
            9..=128 => 16,
            129..=256 => 32,
            _ => 64,
        };
        // Lanes of one subgroup need no barrier to add up.
        let target = subgroup.map_or(target, |lanes| target.min(lanes));
        // Best are equal pieces in which all lanes have as many chunks. What is made on the way is made at once.
        let most = if made { room - 1 } else { (room - 1).min(PIECE_CHUNKS) };
        let pieces = (1..=if made { 1 } else { 8 })
            .filter(|&pieces| chunks.is_multiple_of(pieces))
            .map(|pieces| chunks / pieces);
        // Where outputs are few, having less to do counts for more than having as much as the others.
        let even =
            pieces.filter(|_| outputs > FEWEST_OUTPUTS).filter(|&piece| piece <= most).find_map(|piece| {
                let parts = [target, target / 2, target / 4]
                    .into_iter()
                    .find(|&parts| piece.is_multiple_of(parts.max(1)))?;
                (parts >= 4).then_some((piece, parts))
            });
        let (piece, parts) = even.unwrap_or((chunks.min(most), target));
        // Making x anew for each few outputs would cost more than the product: no more workgroups than are at work at
        // once on a large GPU.
        let busy = if outputs < MANY_OUTPUTS { BUSY_WORKGROUPS } else { 2 * BUSY_WORKGROUPS };
        let tiles = if piece == chunks { (outputs / (LANES / parts)).div_ceil(busy).max(1) } else { 1 };
        let lane_chunks = (piece / parts).max(1);
        // Measured. Where workgroups are many, registers are better spent on having more of them at work.
        let wanted = match chunks {
            257.. => 2,
            129.. => 3,
            _ if !(FEW_OUTPUTS..MANY_OUTPUTS).contains(&outputs) => 3,
            _ => 1,
        };
        let unroll = (1..=wanted).rev().find(|&unroll| lane_chunks.is_multiple_of(unroll)).unwrap_or(1);
        Self { integer, parts, rows, chunks, piece, tiles, unroll }
    }

    fn workgroups(&self, outputs: u32) -> u32 {
        outputs.div_ceil(LANES / self.parts * self.tiles)
    }

    /// The recipe with what this shape chooses.
    pub(crate) fn complete(&self, spec: KernelSpec, subgroup: Option<u32>) -> KernelSpec {
        let arithmetic = if self.integer { Fragment::IntegerArithmetic } else { Fragment::FloatArithmetic };
        let spec = match subgroup {
            Some(lanes) => spec.with(Fragment::PartsSubgroup).constant("SUBGROUP", lanes),
            None => spec.with(Fragment::PartsWorkgroup),
        };
        spec.with(arithmetic)
            .constant("LANES", LANES)
            .constant("PARTS", self.parts)
            .constant("ROWS", self.rows)
            .constant("CHUNKS", self.chunks)
            .constant("PIECE", self.piece)
            .constant("TILES", self.tiles)
            .constant("UNROLL", self.unroll)
    }
}
