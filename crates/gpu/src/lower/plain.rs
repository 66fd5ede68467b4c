//! Unfused operations: one dispatch each, or one for each shard of the weight.

use rullama_gguf::Format;
use rullama_graph::{
    Activation, Attended, Graph, Node, Op, Rows, Shape, SoftRows, Value, Weight, WeightInfo,
};

use super::{BufferRef, Count, Dispatch, Lowering, Place, RopeKey, Scratch};
use crate::{
    CacheFormat, CacheLayout as _, Fragment, GpuError, Kernel, KernelSpec, UniformValue,
    params::{
        AttendParams, AttendRelativeParams, CombineParams, ConvolveColumnsParams, ConvolveParams, CopyParams,
        ElementwiseParams, EmbedParams, LayerNormParams, MeanRowsParams, PlainLinearParams, RmsNormParams,
        RopeParams, RotateParams, RouteParams, StoreKvParams,
    },
    tuning::{
        MANY_VALUES, PLAIN_ATTEND_THREADS, PLAIN_LINEAR_THREADS, PLAIN_THREADS, PLAIN_THREADS_PER_OUTPUT,
    },
    weights::Shard,
};

/// Outputs per workgroup of a product. A grid may have at most 65,535 workgroups; a vocabulary of 262,144 in groups of eight
/// needs half as many.
const LINEAR_OUTPUTS: u32 = PLAIN_LINEAR_THREADS / PLAIN_THREADS_PER_OUTPUT;

/// The most keys that attention over distances sees: it keeps a score for each in workgroup memory.
const MOST_RELATIVE_KEYS: u32 = 1024;

/// A dispatch under construction.
struct Plain {
    spec: KernelSpec,
    buffers: Vec<(&'static str, BufferRef)>,
    params: UniformValue,
    x: u32,
    z: u32,
    weight_bytes: u64,
}

impl Plain {
    fn new(kernel: Kernel, params: impl Into<UniformValue>, x: u32) -> Self {
        let (spec, params) = (plain_spec(kernel), params.into());
        Self { spec, buffers: Vec::new(), params, x, z: 1, weight_bytes: 0 }
    }

    fn with(self, fragment: Fragment) -> Self {
        self.completed(|spec| spec.with(fragment))
    }

    fn completed(mut self, complete: impl FnOnce(KernelSpec) -> KernelSpec) -> Self {
        self.spec = complete(self.spec);
        self
    }

    fn constant(self, name: &'static str, value: u32) -> Self {
        self.completed(|spec| spec.constant(name, value))
    }

    fn buffers(mut self, buffers: &[(&'static str, BufferRef)]) -> Self {
        self.buffers.extend(buffers);
        self
    }
}

/// The recipe of an unfused kernel with its thread counts.
pub(super) fn plain_spec(kernel: Kernel) -> KernelSpec {
    let spec = KernelSpec::new(kernel).with(Fragment::Reduce);
    match kernel {
        Kernel::Linear => {
            spec.constant("LANES", PLAIN_LINEAR_THREADS).constant("PARTS", PLAIN_THREADS_PER_OUTPUT)
        }
        Kernel::Attend => spec.constant("LANES", PLAIN_ATTEND_THREADS),
        _ => spec.constant("LANES", PLAIN_THREADS),
    }
}

impl Lowering<'_> {
    pub(super) fn plain(&mut self, index: usize) -> Result<(), GpuError> {
        let target = self.target;
        let graph = target.graph;
        let node = &graph.nodes()[index];
        let value = graph.produced(index);
        let width = node.shape.width;
        let last = u32::from(node.shape.rows == Rows::Last && !self.shape.decodes);
        let vector = |weight| target.manifest.vector(graph, weight);
        let dispatch = match node.op {
            Op::LastRow { .. } if self.shape.decodes => return Ok(()),
            Op::Embed { .. } => return self.embed(value, node),
            Op::Linear { x, weight, .. } => return self.plain_linear(x, weight, None, value, node),
            Op::ExpertLinear { x, routing, weight, .. } => {
                return self.plain_linear(x, weight, Some(routing), value, node);
            }
            Op::RmsNorm { x, weight, group, eps } => {
                let groups = width / group;
                let params = RmsNormParams { group, groups, weight_at: weight.map_or(0, vector), eps };
                Plain::new(Kernel::RmsNorm, params, groups)
                    .constant("WEIGHTED", weight.is_some().into())
                    .buffers(&[
                        ("vectors", BufferRef::Vectors),
                        ("x", self.own_buffer(x)?),
                        ("y", self.allocate(value)),
                    ])
            }
            Op::Rope { x, rope } => {
                let pairs = width / 2;
                let params = RopeParams { half: rope.head_width / 2, pairs, last };
                let angles = BufferRef::RopeTable(RopeKey::from(rope));
                Plain::new(Kernel::Rope, params, pairs.div_ceil(PLAIN_THREADS)).buffers(&[
                    ("angles", angles),
                    ("x", self.own_buffer(x)?),
                    ("y", self.allocate(value)),
                ])
            }
            Op::StoreKv { k, v, cache } => {
                let info = &graph.caches()[cache.index()];
                let format = self.checked_cache_format(info.head_width)?;
                let units = info.width() / format.stored_at_once(info.head_width);
                let params = StoreKvParams { units, capacity: target.capacities[cache.index()] };
                Plain::new(Kernel::StoreKv, params, units.div_ceil(PLAIN_THREADS))
                    .completed(|spec| format.store(spec, info.head_width))
                    .buffers(&[("k", self.own_buffer(k)?), ("v", self.own_buffer(v)?)])
                    .buffers(&[("keys", BufferRef::Keys(cache)), ("values", BufferRef::Values(cache))])
            }
            Op::Input { input } => {
                let BufferRef::Scratch(scratch) = self.allocate(value) else {
                    unreachable!("values are in scratch buffers")
                };
                assert_eq!(self.program.inputs.len(), input.index(), "inputs are declared in order");
                self.program.inputs.push(scratch);
                return Ok(());
            }
            Op::MeanRows { x, group } => {
                let rows = self.count(graph.value(x).shape.rows);
                let params = MeanRowsParams { width, group, rows };
                Plain::new(Kernel::MeanRows, params, width.div_ceil(PLAIN_THREADS))
                    .buffers(&[("x", self.own_buffer(x)?), ("y", self.allocate(value))])
            }
            Op::Attend { q, to: Attended::Rows { k, v }, shape } => {
                return self.attend_within(value, [q, k, v], shape);
            }
            Op::Attend { q, to: Attended::Cache { cache, .. }, shape } => {
                let pairs = shape.head_width / 2;
                let params = AttendParams {
                    heads: shape.heads,
                    kv_heads: shape.kv_heads,
                    pairs,
                    window: shape.mask.window.unwrap_or(0),
                    last,
                    capacity: target.capacities[cache.index()],
                };
                let format = self.checked_cache_format(shape.head_width)?;
                Plain::new(Kernel::Attend, params, shape.heads)
                    .with(Fragment::SeenInCache)
                    .completed(|spec| format.load(spec, shape.head_width))
                    .constant("PAIRS", pairs.div_ceil(PLAIN_ATTEND_THREADS))
                    .buffers(&[("keys", BufferRef::Keys(cache)), ("values", BufferRef::Values(cache))])
                    .buffers(&[("q", self.own_buffer(q)?), ("y", self.allocate(value))])
            }
            Op::Add { a, b } => self.elementwise(Fragment::Add, [a, b], [0.0; 2], value)?,
            Op::Mul { a, b } => self.elementwise(Fragment::Mul, [a, b], [0.0; 2], value)?,
            Op::GeluMul { gate, up } => self.elementwise(Fragment::GeluMul, [gate, up], [0.0; 2], value)?,
            Op::Scale { x, by } => self.each(Fragment::Scale, x, [by, 0.0], value)?,
            Op::SoftCap { x, cap } => self.each(Fragment::SoftCap, x, [cap, 0.0], value)?,
            Op::ScaleBy { x, weight } => self.by_column(Fragment::Mul, x, weight, value)?,
            Op::Bias { x, weight } => self.by_column(Fragment::Add, x, weight, value)?,
            Op::Clamp { x, low, high } => {
                let (low, high) = finite_bounds(low, high);
                self.each(Fragment::Clamp, x, [low, high], value)?
            }
            Op::Activate { x, with } => {
                let (op, constant) = match with {
                    Activation::Relu => (Fragment::Relu, 0.0),
                    Activation::Sigmoid => (Fragment::Sigmoid, 0.0),
                    Activation::Silu => (Fragment::Swish, 1.0),
                    Activation::QuickGelu => (Fragment::Swish, 1.702),
                };
                self.each(op, x, [constant, 0.0], value)?
            }
            Op::LayerNorm { x, weight, group, eps } => {
                let groups = width / group;
                let params = LayerNormParams { group, groups, weight_at: vector(weight), eps };
                Plain::new(Kernel::LayerNorm, params, groups).buffers(&[
                    ("vectors", BufferRef::Vectors),
                    ("x", self.own_buffer(x)?),
                    ("y", self.allocate(value)),
                ])
            }
            Op::Rotate { x, turns, part } => {
                let (pairs, head) = (width / 2, graph.value(turns).shape.width);
                let params = RotateParams { half: part / 2, pairs, head };
                Plain::new(Kernel::Rotate, params, pairs.div_ceil(PLAIN_THREADS)).buffers(&[
                    ("turns", self.own_buffer(turns)?),
                    ("x", self.own_buffer(x)?),
                    ("y", self.allocate(value)),
                ])
            }
            Op::Convolve { x, weight, shape } => {
                let params = ConvolveParams {
                    rows: self.count(graph.value(x).shape.rows),
                    bands: shape.bands,
                    channels: shape.channels,
                    outputs: shape.outputs,
                    width,
                    weight_at: vector(weight),
                };
                Plain::new(Kernel::Convolve, params, width.div_ceil(PLAIN_THREADS)).buffers(&[
                    ("vectors", BufferRef::Vectors),
                    ("x", self.own_buffer(x)?),
                    ("y", self.allocate(value)),
                ])
            }
            Op::ConvolveColumns { x, weight, rows: seen } => {
                let params = ConvolveColumnsParams { width, seen, weight_at: vector(weight) };
                Plain::new(Kernel::ConvolveColumns, params, width.div_ceil(PLAIN_THREADS)).buffers(&[
                    ("vectors", BufferRef::Vectors),
                    ("x", self.own_buffer(x)?),
                    ("y", self.allocate(value)),
                ])
            }
            Op::AttendRelative { q, k, v, distances, shape, cap } => {
                let window = shape.mask.window.filter(|&window| window <= MOST_RELATIVE_KEYS);
                let window = window.ok_or(unsupported("attention over distances without a short window"))?;
                let params = AttendRelativeParams {
                    heads: shape.heads,
                    head_width: shape.head_width,
                    window,
                    distances: self.count(graph.value(distances).shape.rows),
                    cap,
                };
                Plain::new(Kernel::AttendRelative, params, shape.heads)
                    .constant("KEYS", window)
                    .buffers(&[
                        ("q", self.own_buffer(q)?),
                        ("k", self.own_buffer(k)?),
                        ("v", self.own_buffer(v)?),
                    ])
                    .buffers(&[("distances", self.own_buffer(distances)?), ("y", self.allocate(value))])
            }
            Op::Columns { x, first, .. } => self.copy(x, first, 0, value)?,
            Op::LastRow { x } => self.copy(x, 0, 1, value)?,
            Op::Route { logits, used } => {
                let params = RouteParams { experts: graph.value(logits).shape.width, used };
                Plain::new(Kernel::Route, params, 1)
                    .buffers(&[("logits", self.own_buffer(logits)?), ("y", self.allocate(value))])
            }
            Op::Combine { x, routing, scale } => {
                let used = graph.value(routing).shape.width / 2;
                let params = CombineParams { width, used, scale_at: scale.map_or(0, vector) };
                Plain::new(Kernel::Combine, params, width.div_ceil(PLAIN_THREADS))
                    .constant("SCALED", scale.is_some().into())
                    .buffers(&[("x", self.own_buffer(x)?), ("routing", self.own_buffer(routing)?)])
                    .buffers(&[("vectors", BufferRef::Vectors), ("y", self.allocate(value))])
            }
        };
        self.push_plain(dispatch, value, node);
        Ok(())
    }

    /// The cache format, or an error if it cannot store heads of this width.
    fn checked_cache_format(&self, head_width: u32) -> Result<CacheFormat, GpuError> {
        let format = self.target.cache_format;
        format.divides(head_width).then_some(format).ok_or(unsupported("heads of this width in eight bits"))
    }

    fn push_plain(&mut self, plain: Plain, value: Value, node: &Node) {
        let Plain { spec, buffers, params, x, z, weight_bytes } = plain;
        let (label, uniforms) = (self.name(value), vec![params]);
        let workgroups = [Count::Fixed(x), Count::Rows(node.shape.rows), Count::Fixed(z)];
        self.push(Dispatch { label, spec, uniforms, buffers, workgroups, weight_bytes });
    }

    fn embed(&mut self, value: Value, node: &Node) -> Result<(), GpuError> {
        let Op::Embed { table, scale, soft } = node.op else { unreachable!("only called for embeddings") };
        let target = self.target;
        let graph = target.graph;
        let factor = scale * target.manifest.factor(graph, table);
        let (packed_index, _) = target.manifest.place(graph, table);
        let packed = &target.manifest.packed[packed_index];
        let y = self.allocate(value);
        for (index, shard) in packed.shards.iter().enumerate() {
            let PlaneParams { plane_at, plane_words } = plane_params(shard, packed.packing.plane_words);
            let params = EmbedParams {
                plane_at,
                plane_words,
                width: node.shape.width,
                shard_first: shard.rows.start as u32,
                shard_rows: (shard.rows.end - shard.rows.start) as u32,
                factor,
                takes_soft: u32::from(soft == SoftRows::Given),
            };
            let mut plain = Plain::new(Kernel::Embed, params, 1)
                .with(Fragment::Planes)
                .with(fragment(packed.packing.format)?)
                .buffers(&self.table(packed_index, index))
                .buffers(&[("soft_rows", BufferRef::SoftRows), ("y", y)]);
            plain.weight_bytes = 4 * u64::from(packed.packing.row_words()) * u64::from(self.shape.rows);
            self.push_plain(plain, value, node);
        }
        Ok(())
    }

    fn plain_linear(
        &mut self,
        x: Value,
        weight: Weight,
        routing: Option<Value>,
        value: Value,
        node: &Node,
    ) -> Result<(), GpuError> {
        let target = self.target;
        let graph = target.graph;
        let info = graph.weight(weight);
        let (packed_index, first_row) = target.manifest.place(graph, weight);
        let packed = &target.manifest.packed[packed_index];
        let experts_per_row = routing.map_or(1, |routing| graph.value(routing).shape.width / 2);
        let expert_stride = expert_stride(graph, x, info, experts_per_row);
        let mut buffers = vec![("x", self.own_buffer(x)?), ("y", self.allocate(value))];
        if let Some(routing) = routing {
            buffers.push(("routing", self.experts(routing, packed_index)?));
        }
        for (index, shard) in packed.shards.iter().enumerate() {
            let rows = (shard.rows.end - shard.rows.start) as u32;
            let PlaneParams { plane_at, plane_words } = plane_params(shard, packed.packing.plane_words);
            let params = PlainLinearParams {
                plane_at,
                plane_words,
                width: info.width,
                outputs: info.rows,
                first_row,
                matrix_rows: info.tensor_rows,
                shard_first: shard.rows.start as u32,
                shard_rows: rows,
                x_width: graph.value(x).shape.width,
                expert_stride,
                y_width: node.shape.width,
                routing_width: 2 * experts_per_row,
                factor: target.manifest.factor(graph, weight),
            };
            let mut plain = Plain::new(Kernel::Linear, params, info.rows.div_ceil(LINEAR_OUTPUTS))
                .with(Fragment::Planes)
                .with(fragment(packed.packing.format)?)
                .with(if routing.is_some() { Fragment::Routed } else { Fragment::Dense })
                .buffers(&[("weight", BufferRef::Shard { packed: packed_index, shard: index })])
                .buffers(&buffers);
            plain.z = experts_per_row;
            plain.weight_bytes = u64::from((experts_per_row * info.rows).min(rows))
                * 4
                * u64::from(packed.packing.row_words());
            self.push_plain(plain, value, node);
        }
        Ok(())
    }

    fn elementwise(
        &mut self,
        op: Fragment,
        [a, b]: [Value; 2],
        [constant, other]: [f32; 2],
        out: Value,
    ) -> Result<Plain, GpuError> {
        let width = self.target.graph.value(out).shape.width;
        let whole = u32::MAX;
        let params = ElementwiseParams { width, b_at: 0, b_period: whole, constant, other };
        let buffers = [("a", self.own_buffer(a)?), ("b", self.own_buffer(b)?), ("y", self.allocate(out))];
        Ok(self.by_element(op, params, out).buffers(&buffers))
    }

    /// An operation with a weight that is as long as groups of columns.
    fn by_column(&mut self, op: Fragment, x: Value, weight: Weight, out: Value) -> Result<Plain, GpuError> {
        let graph = self.target.graph;
        let (width, b_period) = (graph.value(out).shape.width, graph.weight(weight).width);
        let b_at = self.target.manifest.vector(graph, weight);
        let params = ElementwiseParams { width, b_at, b_period, constant: 0.0, other: 0.0 };
        let buffers = [("a", self.own_buffer(x)?), ("b", BufferRef::Vectors), ("y", self.allocate(out))];
        Ok(self.by_element(op, params, out).buffers(&buffers))
    }

    /// The kernel of an operation on every element. Where there are many, each thread computes some of them.
    fn by_element(&self, op: Fragment, params: ElementwiseParams, out: Value) -> Plain {
        let Shape { rows, width } = self.target.graph.value(out).shape;
        let many = u64::from(self.count(rows)) * u64::from(width) >= MANY_VALUES;
        let each = if many { 4 } else { 1 };
        Plain::new(Kernel::Elementwise, params, width.div_ceil(each * PLAIN_THREADS))
            .with(Fragment::Gelu)
            .with(op)
            .constant("EACH", each)
    }

    /// An operation on one value and constants.
    fn each(&mut self, op: Fragment, x: Value, constants: [f32; 2], out: Value) -> Result<Plain, GpuError> {
        self.elementwise(op, [x, x], constants, out)
    }

    /// Copies a value out of a buffer that it shares.
    pub(super) fn copy_of(&mut self, value: Value, place: Place) -> Result<Scratch, GpuError> {
        let node = self.target.graph.value(value);
        let Shape { rows, width } = node.shape;
        let scratch = self.allocate_rows(rows, width);
        let params = CopyParams { x_width: place.stride, first: place.at, width, last: 0 };
        let plain = Plain::new(Kernel::Copy, params, width.div_ceil(PLAIN_THREADS))
            .buffers(&[("x", place.buffer()), ("y", BufferRef::Scratch(scratch))]);
        self.push_plain(plain, value, node);
        Ok(scratch)
    }

    fn copy(&mut self, x: Value, first: u32, last: u32, out: Value) -> Result<Plain, GpuError> {
        let graph = self.target.graph;
        let (x_width, width) = (graph.value(x).shape.width, graph.value(out).shape.width);
        let params = CopyParams { x_width, first, width, last };
        let buffers = [("x", self.own_buffer(x)?), ("y", self.allocate(out))];
        Ok(Plain::new(Kernel::Copy, params, width.div_ceil(PLAIN_THREADS)).buffers(&buffers))
    }
}

/// The bounds of a clamp as uniforms. Infinite bounds are none; WGSL need not know infinity.
pub(super) fn finite_bounds(low: f32, high: f32) -> (f32, f32) {
    (low.clamp(f32::MIN, f32::MAX), high.clamp(f32::MIN, f32::MAX))
}

fn unsupported(operation: &'static str) -> GpuError {
    GpuError::Unsupported { operation }
}

/// Elements from one expert's input to the next; 0 if all experts read the same.
pub(super) fn expert_stride(graph: &Graph, x: Value, weight: &WeightInfo, experts_per_row: u32) -> u32 {
    let separate = experts_per_row > 1 && graph.value(x).shape.width == experts_per_row * weight.width;
    if separate { weight.width } else { 0 }
}

/// The fragment that reads weights of a format.
pub(super) fn fragment(format: Format) -> Result<Fragment, GpuError> {
    Fragment::format(format).ok_or(unsupported("linear"))
}

/// Where kernels find the planes of a shard: the first word of each plane, and the words per row of each. There are at most
/// three planes; kernels read vectors of four.
pub(super) struct PlaneParams {
    pub(super) plane_at: [u32; 4],
    pub(super) plane_words: [u32; 4],
}

/// The planes of a shard as uniforms.
pub(super) fn plane_params(shard: &Shard, plane_words: [u32; 3]) -> PlaneParams {
    let four = |[a, b, c]: [u32; 3]| [a, b, c, 0];
    PlaneParams { plane_at: four(shard.plane_at), plane_words: four(plane_words) }
}
