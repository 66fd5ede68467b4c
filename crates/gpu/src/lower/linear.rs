//! The dispatches of matrix products: the kernel, its prologue and its epilogue.

use bytemuck::Zeroable;

use super::{
    BufferRef, Count, Dispatch, Lowering, Place,
    experts::GroupKey,
    plain::{PlaneParams, expert_stride, finite_bounds, fragment, plane_params},
    select::{RowProduct, RowShape},
    stage::{Epilogue, Input, InputSource, Linear, Norm},
};
use crate::{
    Experts, FewTiles, Fragment, GpuError, Kernel, KernelSpec, MatrixTiles, Tiles, UniformValue,
    attention::RowAttention,
    few::FewProduct,
    params::{LinearParams, MergedInput, ResidualInput},
    tuning::{FEW_ROWS, MOST_DECODED_ROWS, rows_together},
};

/// The kernel that computes a product, with its tile sizes.
#[derive(Debug, Clone, Copy)]
enum ProductKernel {
    /// One row or a few at a time.
    Rows(RowShape),
    /// Many rows.
    Tiles(Tiles),
    /// Many rows, grouped by expert.
    Grouped(Tiles, Experts),
    /// Many rows, on matrix units.
    Matrices(MatrixTiles),
    /// A few rows, each weight decoded once for all of them.
    Few(FewTiles),
}

impl ProductKernel {
    fn body(self) -> Kernel {
        match self {
            Self::Rows(_) => Kernel::LinearRow,
            Self::Tiles(_) | Self::Grouped(..) => Kernel::LinearTile,
            Self::Matrices(_) => Kernel::LinearMatrix,
            Self::Few(_) => Kernel::LinearFew,
        }
    }
}

/// A product's dispatch under construction. All shards of the weight share it.
struct Product {
    spec: KernelSpec,
    buffers: Vec<(&'static str, BufferRef)>,
    /// Uniforms of the input fragment.
    uniforms: Vec<UniformValue>,
    /// The kernel's uniform, without the fields that depend on the shard.
    params: LinearParams,
}

impl Product {
    fn with(&mut self, fragment: Fragment) {
        self.spec = self.spec.clone().with(fragment);
    }
}

impl Lowering<'_> {
    pub(super) fn linear(&mut self, linear: &Linear) -> Result<(), GpuError> {
        let target = self.target;
        let graph = target.graph;
        let (first, _) = linear.outputs[0];
        let info = graph.weight(first);
        let (packed_index, first_row) = target.manifest.place(graph, first);
        let packed = &target.manifest.packed[packed_index];
        let outputs: u32 = linear.outputs.iter().map(|&(weight, _)| graph.weight(weight).rows).sum();
        let experts_per_row = linear.routing.map_or(1, |routing| graph.value(routing).shape.width / 2);
        let pair = match linear.epilogue {
            Epilogue::GeluPair { up } => target.manifest.place(graph, up).1 - first_row,
            _ => 0,
        };
        let rows = self.count(linear.rows);
        let kernel = self.product_kernel(linear, outputs, experts_per_row);
        let spec = KernelSpec::new(kernel.body())
            .with(Fragment::LinearParams)
            .with(Fragment::Planes)
            .with(fragment(packed.packing.format)?);
        let (low, high) = match linear.epilogue {
            Epilogue::Clamp { low, high } => finite_bounds(low, high),
            _ => (0.0, 0.0),
        };
        let params = LinearParams {
            width: info.width,
            outputs,
            first_row,
            // Kernels ignore this number if there is only one matrix.
            matrix_rows: info.tensor_rows,
            pair,
            routing_width: 2 * experts_per_row,
            factor: target.manifest.factor(graph, first),
            cap: if let Epilogue::SoftCap(cap) = linear.epilogue { cap } else { 0.0 },
            low,
            high,
            ..Zeroable::zeroed()
        };
        let mut product = Product { spec, buffers: Vec::new(), uniforms: Vec::new(), params };
        self.input(&mut product, linear, kernel, experts_per_row)?;
        self.epilogue(&mut product, linear.epilogue)?;
        self.rows(&mut product, linear, kernel, packed_index)?;

        // If several stages write this buffer, the first allocates it.
        let y_width = linear.columns.map_or(outputs * experts_per_row, |columns| columns.width);
        let partial_sums = match kernel {
            ProductKernel::Rows(shape) => shape.partial_sums(),
            ProductKernel::Few(tiles) => tiles.partial_sums(),
            _ => 1,
        };
        let scratch = match linear.columns {
            Some(columns) if columns.column > 0 => self.place(columns.first)?.scratch,
            _ => self.allocate_rows(linear.rows, y_width * partial_sums),
        };
        self.partial_sums.extend(linear.outputs.iter().map(|&(_, value)| (value, partial_sums)));
        let y_at = linear.columns.map_or(0, |columns| columns.column);
        let mut at = y_at;
        // A step of one row has no next row, and its consumers read partial sums by their own width.
        let y_stride = if rows == 1 { y_width } else { y_width * partial_sums };
        for &(weight, value) in &linear.outputs {
            self.places.insert(value, Place { scratch, at, stride: y_stride });
            at += graph.weight(weight).rows * experts_per_row;
        }
        product.buffers.push(("y", BufferRef::Scratch(scratch)));
        (product.params.y_at, product.params.y_stride) = (y_at, y_stride);

        let (spec, workgroups) = self.with_grid(product.spec, linear, kernel, outputs, experts_per_row);
        // Matrices that are read. Tiles read each once for all rows.
        let matrices =
            if rows > FEW_ROWS { (rows * experts_per_row).min(info.matrices) } else { experts_per_row };
        let label = linear.outputs.iter().map(|&(_, value)| self.name(value)).collect::<Vec<_>>().join(" + ");
        for (index, shard) in packed.shards.iter().enumerate() {
            let shard_rows = shard.rows.end - shard.rows.start;
            let PlaneParams { plane_at, plane_words } = plane_params(shard, packed.packing.plane_words);
            let params = LinearParams {
                plane_at,
                plane_words,
                shard_first: shard.rows.start as u32,
                shard_rows: shard_rows as u32,
                ..product.params
            };
            let mut uniforms = product.uniforms.clone();
            uniforms.push(params.into());
            let mut buffers = product.buffers.clone();
            buffers.push(("weight", BufferRef::Shard { packed: packed_index, shard: index }));
            let weight_rows = u64::from(outputs * matrices) * if pair > 0 { 2 } else { 1 };
            let weight_bytes = weight_rows.min(shard_rows) * 4 * u64::from(packed.packing.row_words());
            let (label, spec) = (label.clone(), spec.clone());
            self.push(Dispatch { label, spec, uniforms, buffers, workgroups, weight_bytes });
        }
        Ok(())
    }

    /// The fastest kernel for a product.
    fn product_kernel(&self, linear: &Linear, outputs: u32, experts_per_row: u32) -> ProductKernel {
        let target = self.target;
        let (first, _) = linear.outputs[0];
        let info = target.graph.weight(first);
        let paired = matches!(linear.epilogue, Epilogue::GeluPair { .. });
        let rows = self.count(linear.rows);
        let experts = linear.routing.map(|_| Experts { count: info.matrices, used: experts_per_row });
        let few = if experts.is_some() { FEW_ROWS } else { MOST_DECODED_ROWS };
        if rows > few {
            match experts {
                // Rows are grouped by expert.
                Some(experts) if experts.can_be_grouped() => {
                    return ProductKernel::Grouped(Tiles::for_experts(experts, rows, paired), experts);
                }
                Some(_) => {}
                None => {
                    let matrices =
                        target.matrices.tiles([rows, info.width, outputs], paired, target.workgroup_memory);
                    return matrices.map_or_else(
                        || ProductKernel::Tiles(Tiles::choose(rows, outputs, paired)),
                        ProductKernel::Matrices,
                    );
                }
            }
        }
        let has_prologue = match linear.input {
            Input::Value(value) => self.unmerged.contains_key(&value),
            Input::Prologue { .. } => true,
        };
        let weights = u64::from(info.width) * u64::from(outputs) * if paired { 2 } else { 1 };
        let format = target.manifest.packed(target.graph, first).packing.format;
        let most_partial_sums = match (linear.input, linear.epilogue, &linear.outputs[..]) {
            // Partial sums can be added later only if no epilogue changes them.
            (Input::Value(_), Epilogue::Store, [(_, value)])
                if experts.is_none() && linear.columns.is_none() =>
            {
                self.split_k_limits.get(value).copied().unwrap_or(1)
            }
            _ => 1,
        };
        if experts.is_none() && !has_prologue {
            let few = FewProduct { format, width: info.width, outputs, rows, paired, most_partial_sums };
            if let Some(tiles) = FewTiles::choose(few, target.subgroup, target.workgroup_memory) {
                return ProductKernel::Few(tiles);
            }
        }
        let product = RowProduct {
            format,
            width: info.width,
            outputs,
            rows: if experts.is_some() { 1 } else { rows },
            rows_together: if experts.is_some() { 1 } else { rows.min(rows_together(weights)) },
            has_prologue,
            most_partial_sums,
        };
        ProductKernel::Rows(RowShape::new(product, target.workgroup_memory, target.subgroup))
    }

    /// Adds the fragment, buffers and uniforms of the input.
    fn input(
        &mut self,
        product: &mut Product,
        linear: &Linear,
        kernel: ProductKernel,
        experts_per_row: u32,
    ) -> Result<(), GpuError> {
        let target = self.target;
        let graph = target.graph;
        match linear.input {
            Input::Value(value) if self.unmerged.contains_key(&value) => {
                let unmerged = self.unmerged[&value];
                let RowAttention { shape, split_keys, most_splits, .. } = unmerged.attention;
                product.with(Fragment::MergedInput);
                product.with(Fragment::Splits);
                product.spec = product
                    .spec
                    .clone()
                    .constant("HEADS", shape.heads)
                    .constant("HEAD_WIDTH", shape.head_width)
                    .constant("SPLIT_KEYS", split_keys)
                    .constant("MOST_SPLITS", most_splits);
                let scratch = [
                    ("sums", BufferRef::Scratch(unmerged.sums)),
                    ("peaks", BufferRef::Scratch(unmerged.peaks)),
                ];
                product.buffers.extend(scratch);
                product.uniforms.push(MergedInput { window: shape.mask.window.unwrap_or(0) }.into());
            }
            Input::Value(value) => {
                let x = self.place(value)?;
                let (first, _) = linear.outputs[0];
                product.params.x_at = x.at;
                product.params.x_stride = x.stride;
                product.params.expert_stride =
                    expert_stride(graph, value, graph.weight(first), experts_per_row);
                if let ProductKernel::Rows(_) = kernel {
                    product.with(Fragment::PlainInput);
                }
                product.buffers.push(("x", x.buffer()));
            }
            Input::Prologue { source, keep, norm, factor } => {
                let (sum, base) = match source {
                    InputSource::Value(value) => (None, value),
                    InputSource::Sum(sum) => (Some(sum), sum.base),
                };
                let base = self.own_buffer(base)?;
                let branch = sum.map_or(Ok(base), |sum| self.own_buffer(sum.branch))?;
                product.buffers.extend([("base", base), ("branch", branch), ("vectors", BufferRef::Vectors)]);
                product.with(Fragment::ResidualInput);
                product.spec = product.spec.clone().with_reduce(target.subgroup);
                match keep {
                    Some(value) => {
                        product.buffers.push(("kept", self.allocate(value)));
                        product.with(Fragment::Kept);
                    }
                    None => product.with(Fragment::Dropped),
                }
                let scale = sum.and_then(|sum| sum.scale);
                product.spec = product
                    .spec
                    .clone()
                    .constant(
                        "BRANCH",
                        sum.map_or(0, |sum| self.partial_sums.get(&sum.branch).map_or(1, |&n| n)),
                    )
                    .constant("SCALED", scale.is_some().into())
                    .constant("NORMED", norm.is_some().into());
                let vector = |weight| target.manifest.vector(graph, weight);
                let at = |norm: Option<Norm>| norm.map_or(0, |norm| vector(norm.weight));
                let eps = |norm: Option<Norm>| norm.map_or(0.0, |norm| norm.eps);
                let branch_norm = sum.map(|sum| sum.branch_norm);
                let residual = ResidualInput {
                    norm_at: at(norm),
                    branch_norm_at: at(branch_norm),
                    scale_at: scale.map_or(0, vector),
                    eps: eps(norm),
                    branch_eps: eps(branch_norm),
                    factor,
                };
                product.uniforms.push(residual.into());
            }
        }
        Ok(())
    }

    /// Adds the fragments and the second operand of the epilogue.
    fn epilogue(&self, product: &mut Product, epilogue: Epilogue) -> Result<(), GpuError> {
        match epilogue {
            Epilogue::Store => product.with(Fragment::Store),
            Epilogue::SoftCap(_) => product.with(Fragment::CappedStore),
            Epilogue::Clamp { .. } => product.with(Fragment::ClampedStore),
            Epilogue::GeluPair { .. } => {
                product.with(Fragment::Gelu);
                product.with(Fragment::GeluPair);
            }
            Epilogue::GeluOther { other, first } => {
                let place = self.place(other)?;
                product.params.other_at = place.at + first;
                product.params.other_stride = place.stride;
                product.buffers.push(("other", place.buffer()));
                product.with(Fragment::Gelu);
                product.with(Fragment::GeluOther);
            }
        }
        Ok(())
    }

    /// Adds the fragment that says which rows are multiplied with which matrices: all rows with one matrix, or each row with
    /// the matrices of its experts.
    fn rows(
        &mut self,
        product: &mut Product,
        linear: &Linear,
        kernel: ProductKernel,
        packed: usize,
    ) -> Result<(), GpuError> {
        match (kernel, linear.routing) {
            (ProductKernel::Grouped(tiles, experts), Some(routing)) => {
                let key = GroupKey { routing, experts, tile_rows: tiles.rows };
                product.buffers.push(("groups", self.group(key, packed)?));
                product.with(Fragment::Grouped);
            }
            (ProductKernel::Tiles(_), _) => product.with(Fragment::InOrder),
            // These kernels always take rows in order.
            (ProductKernel::Matrices(_) | ProductKernel::Few(_), _) => {}
            (_, Some(routing)) => {
                product.buffers.push(("routing", self.experts(routing, packed)?));
                product.with(Fragment::Routed);
            }
            (_, None) => product.with(Fragment::Dense),
        }
        Ok(())
    }

    /// The recipe with its constants, and the grid.
    fn with_grid(
        &self,
        spec: KernelSpec,
        linear: &Linear,
        kernel: ProductKernel,
        outputs: u32,
        experts_per_row: u32,
    ) -> (KernelSpec, [Count; 3]) {
        let target = self.target;
        let width = target.graph.weight(linear.outputs[0].0).width;
        let one = Count::Fixed(1);
        match kernel {
            ProductKernel::Rows(shape) => {
                let spec = shape.complete(spec.with(Fragment::PlainEntry), target.subgroup);
                let groups = Count::Fixed(shape.workgroups(outputs));
                let blocks = Count::Blocks(linear.rows, shape.rows());
                let [x, y] = if shape.rows_first() { [blocks, groups] } else { [groups, blocks] };
                (spec, [x, y, Count::Fixed(experts_per_row)])
            }
            ProductKernel::Tiles(tiles) => {
                let [x, ..] = tiles.grid(1, outputs);
                (tiles.constants(spec, width), [Count::Fixed(x), Count::Blocks(linear.rows, tiles.rows), one])
            }
            ProductKernel::Grouped(tiles, experts) => {
                let [x, ..] = tiles.grid(1, outputs);
                let y = Count::Tiles { rows: linear.rows, experts, tile_rows: tiles.rows };
                (tiles.constants(spec, width), [Count::Fixed(x), y, one])
            }
            ProductKernel::Matrices(tiles) => {
                let paired = matches!(linear.epilogue, Epilogue::GeluPair { .. });
                let [x, ..] = tiles.grid(1, outputs, paired);
                (
                    tiles.constants(spec, width),
                    [Count::Fixed(x), Count::Blocks(linear.rows, tiles.rows()), one],
                )
            }
            ProductKernel::Few(tiles) => {
                let paired = matches!(linear.epilogue, Epilogue::GeluPair { .. });
                let rows = self.count(linear.rows);
                let blocks = Count::Blocks(linear.rows, FewTiles::rows(rows));
                let subgroup = target.subgroup.expect("chosen only where there are subgroups");
                let spec = tiles.complete(spec, rows, subgroup);
                (spec, [blocks, Count::Fixed(tiles.workgroups(outputs, paired)), one])
            }
        }
    }
}
