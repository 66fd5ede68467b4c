//! The dispatches of operations as they are: one for each, or one for each shard of its weight.

use rullama_gguf::Format;
use rullama_graph::{
    Activation, Attended, Graph, Node, Op, Rows, Shape, SoftRows, Value, Weight, WeightInfo,
};

use super::{Count, Dispatch, Lowering, Place, RopeKey, Scratch, Slot};
use crate::{
    CacheFormat, CacheLayout as _, Fragment, GpuError, Kernel, KernelSpec, UniformValue,
    params::{
        AttendParams, AttendRelativeParams, CombineParams, ConvolveColumnsParams, ConvolveParams, CopyParams,
        ElementwiseParams, EmbedParams, LayerNormParams, MeanRowsParams, PlainLinearParams, RmsNormParams,
        RopeParams, RotateParams, RouteParams, StoreKvParams,
    },
    weights::Shard,
};

/// The lanes of most workgroups here: rows are of that order.
const LANES: u32 = 64;

/// The lanes of a product's workgroup, and how many share an output.
const LINEAR_LANES: u32 = 256;
const LINEAR_PARTS: u32 = 32;

/// Outputs of a product's workgroup. Enough that no grid is longer than WebGPU allows: a vocabulary of
/// 262,144 in eights is half of 65,535.
const LINEAR_OUTPUTS: u32 = LINEAR_LANES / LINEAR_PARTS;

/// The lanes of attention's workgroup: keys that are scored at once.
pub(super) const ATTEND_LANES: u32 = 256;

/// The most keys that attention over distances sees: it keeps a score for each in workgroup memory.
const MOST_RELATIVE_KEYS: u32 = 1024;

/// A dispatch in the making.
struct Plain {
    spec: KernelSpec,
    buffers: Vec<(&'static str, Slot)>,
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

    fn buffers(mut self, buffers: &[(&'static str, Slot)]) -> Self {
        self.buffers.extend(buffers);
        self
    }
}

/// A kernel of this file, with the constants that all of its kind have.
pub(super) fn plain_spec(kernel: Kernel) -> KernelSpec {
    let spec = KernelSpec::new(kernel).with(Fragment::Reduce);
    match kernel {
        Kernel::Linear => spec.constant("LANES", LINEAR_LANES).constant("PARTS", LINEAR_PARTS),
        Kernel::Attend => spec.constant("LANES", ATTEND_LANES),
        _ => spec.constant("LANES", LANES),
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
                    .buffers(&[("vectors", Slot::Vectors), ("x", self.whole(x)?), ("y", self.claim(value))])
            }
            Op::Rope { x, rope } => {
                let pairs = width / 2;
                let params = RopeParams { half: rope.head_width / 2, pairs, last };
                let turns = Slot::Turns(RopeKey::from(rope));
                Plain::new(Kernel::Rope, params, pairs.div_ceil(LANES)).buffers(&[
                    ("turns", turns),
                    ("x", self.whole(x)?),
                    ("y", self.claim(value)),
                ])
            }
            Op::StoreKv { k, v, cache } => {
                let info = &graph.caches()[cache.index()];
                let format = self.whole_groups(info.head_width)?;
                let units = info.width() / format.stored_at_once(info.head_width);
                let params = StoreKvParams { units, capacity: target.capacities[cache.index()] };
                Plain::new(Kernel::StoreKv, params, units.div_ceil(LANES))
                    .completed(|spec| format.store(spec, info.head_width))
                    .buffers(&[("k", self.whole(k)?), ("v", self.whole(v)?)])
                    .buffers(&[("keys", Slot::Keys(cache)), ("values", Slot::Values(cache))])
            }
            Op::Input { input } => {
                let Slot::Scratch(scratch) = self.claim(value) else {
                    unreachable!("values are in scratch buffers")
                };
                assert_eq!(self.program.inputs.len(), input.index(), "inputs are declared in order");
                self.program.inputs.push(scratch);
                return Ok(());
            }
            Op::MeanRows { x, group } => {
                let rows = self.count(graph.value(x).shape.rows);
                let params = MeanRowsParams { width, group, rows };
                Plain::new(Kernel::MeanRows, params, width.div_ceil(LANES))
                    .buffers(&[("x", self.whole(x)?), ("y", self.claim(value))])
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
                let format = self.whole_groups(shape.head_width)?;
                Plain::new(Kernel::Attend, params, shape.heads)
                    .with(Fragment::SeenInCache)
                    .completed(|spec| format.load(spec, shape.head_width))
                    .constant("PAIRS", pairs.div_ceil(ATTEND_LANES))
                    .buffers(&[("keys", Slot::Keys(cache)), ("values", Slot::Values(cache))])
                    .buffers(&[("q", self.whole(q)?), ("y", self.claim(value))])
            }
            Op::Add { a, b } => self.elementwise(Fragment::Add, [a, b], [0.0; 2], value)?,
            Op::Mul { a, b } => self.elementwise(Fragment::Mul, [a, b], [0.0; 2], value)?,
            Op::GeluMul { gate, up } => self.elementwise(Fragment::GeluMul, [gate, up], [0.0; 2], value)?,
            Op::Scale { x, by } => self.each(Fragment::Scale, x, [by, 0.0], value)?,
            Op::SoftCap { x, cap } => self.each(Fragment::SoftCap, x, [cap, 0.0], value)?,
            Op::ScaleBy { x, weight } => self.by_column(Fragment::Mul, x, weight, value)?,
            Op::Bias { x, weight } => self.by_column(Fragment::Add, x, weight, value)?,
            Op::Clamp { x, low, high } => {
                // Infinite bounds are none; WGSL need not know infinity.
                let [low, high] = [low, high].map(|bound| bound.clamp(f32::MIN, f32::MAX));
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
                    ("vectors", Slot::Vectors),
                    ("x", self.whole(x)?),
                    ("y", self.claim(value)),
                ])
            }
            Op::Rotate { x, turns, part } => {
                let (pairs, head) = (width / 2, graph.value(turns).shape.width);
                let params = RotateParams { half: part / 2, pairs, head };
                Plain::new(Kernel::Rotate, params, pairs.div_ceil(LANES)).buffers(&[
                    ("turns", self.whole(turns)?),
                    ("x", self.whole(x)?),
                    ("y", self.claim(value)),
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
                Plain::new(Kernel::Convolve, params, width.div_ceil(LANES)).buffers(&[
                    ("vectors", Slot::Vectors),
                    ("x", self.whole(x)?),
                    ("y", self.claim(value)),
                ])
            }
            Op::ConvolveColumns { x, weight, rows: seen } => {
                let params = ConvolveColumnsParams { width, seen, weight_at: vector(weight) };
                Plain::new(Kernel::ConvolveColumns, params, width.div_ceil(LANES)).buffers(&[
                    ("vectors", Slot::Vectors),
                    ("x", self.whole(x)?),
                    ("y", self.claim(value)),
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
                    .buffers(&[("q", self.whole(q)?), ("k", self.whole(k)?), ("v", self.whole(v)?)])
                    .buffers(&[("distances", self.whole(distances)?), ("y", self.claim(value))])
            }
            Op::Columns { x, first, .. } => self.copy(x, first, 0, value)?,
            Op::LastRow { x } => self.copy(x, 0, 1, value)?,
            Op::Route { logits, used } => {
                let params = RouteParams { experts: graph.value(logits).shape.width, used };
                Plain::new(Kernel::Route, params, 1)
                    .buffers(&[("logits", self.whole(logits)?), ("y", self.claim(value))])
            }
            Op::Combine { x, routing, scale } => {
                let used = graph.value(routing).shape.width / 2;
                let params = CombineParams { width, used, scale_at: scale.map_or(0, vector) };
                Plain::new(Kernel::Combine, params, width.div_ceil(LANES))
                    .constant("SCALED", scale.is_some().into())
                    .buffers(&[("x", self.whole(x)?), ("routing", self.whole(routing)?)])
                    .buffers(&[("vectors", Slot::Vectors), ("y", self.claim(value))])
            }
        };
        self.push_plain(dispatch, value, node);
        Ok(())
    }

    /// The format of caches, if it knows heads of this width.
    fn whole_groups(&self, head_width: u32) -> Result<CacheFormat, GpuError> {
        let format = self.target.cache_format;
        format.divides(head_width).then_some(format).ok_or(unsupported("heads of this width in eight bits"))
    }

    fn push_plain(&mut self, plain: Plain, value: Value, node: &Node) {
        let Plain { spec, buffers, params, x, z, weight_bytes } = plain;
        let rows = if node.shape.width == 0 { Rows::Step } else { node.shape.rows };
        let (what, uniforms) = (self.name(value), vec![params]);
        let workgroups = [Count::Fixed(x), Count::Rows(rows), Count::Fixed(z)];
        self.push(Dispatch { what, spec, uniforms, buffers, workgroups, weight_bytes });
    }

    fn embed(&mut self, value: Value, node: &Node) -> Result<(), GpuError> {
        let Op::Embed { table, scale, soft } = node.op else { unreachable!("only called for embeddings") };
        let target = self.target;
        let graph = target.graph;
        let factor = scale * target.manifest.factor(graph, table);
        let (packed_index, _) = target.manifest.place(graph, table);
        let packed = &target.manifest.packed[packed_index];
        let y = self.claim(value);
        for (index, shard) in packed.shards.iter().enumerate() {
            let Planes { plane_at, plane_words } = planes(shard, packed.packing.plane_words);
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
                .buffers(&[("soft_rows", Slot::SoftRows), ("y", y)]);
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
        let slots = routing.map_or(1, |routing| graph.value(routing).shape.width / 2);
        let x_slot = expert_stride(graph, x, info, slots);
        let mut buffers = vec![("x", self.whole(x)?), ("y", self.claim(value))];
        if let Some(routing) = routing {
            buffers.push(("routing", self.experts(routing, packed_index)?));
        }
        for (index, shard) in packed.shards.iter().enumerate() {
            let rows = (shard.rows.end - shard.rows.start) as u32;
            let Planes { plane_at, plane_words } = planes(shard, packed.packing.plane_words);
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
                x_slot,
                y_width: node.shape.width,
                routing_width: 2 * slots,
                factor: target.manifest.factor(graph, weight),
            };
            let mut plain = Plain::new(Kernel::Linear, params, info.rows.div_ceil(LINEAR_OUTPUTS))
                .with(Fragment::Planes)
                .with(fragment(packed.packing.format)?)
                .with(if routing.is_some() { Fragment::Routed } else { Fragment::Dense })
                .buffers(&[("weight", Slot::Shard { packed: packed_index, shard: index })])
                .buffers(&buffers);
            plain.z = slots;
            plain.weight_bytes =
                u64::from((slots * info.rows).min(rows)) * 4 * u64::from(packed.packing.row_words());
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
        let buffers = [("a", self.whole(a)?), ("b", self.whole(b)?), ("y", self.claim(out))];
        let plain = Plain::new(Kernel::Elementwise, params, width.div_ceil(LANES));
        Ok(plain.with(Fragment::Gelu).with(op).buffers(&buffers))
    }

    /// An operation with a weight that is as long as groups of columns.
    fn by_column(&mut self, op: Fragment, x: Value, weight: Weight, out: Value) -> Result<Plain, GpuError> {
        let graph = self.target.graph;
        let (width, b_period) = (graph.value(out).shape.width, graph.weight(weight).width);
        let b_at = self.target.manifest.vector(graph, weight);
        let params = ElementwiseParams { width, b_at, b_period, constant: 0.0, other: 0.0 };
        let buffers = [("a", self.whole(x)?), ("b", Slot::Vectors), ("y", self.claim(out))];
        let plain = Plain::new(Kernel::Elementwise, params, width.div_ceil(LANES));
        Ok(plain.with(Fragment::Gelu).with(op).buffers(&buffers))
    }

    /// An operation on one value and constants.
    fn each(&mut self, op: Fragment, x: Value, constants: [f32; 2], out: Value) -> Result<Plain, GpuError> {
        self.elementwise(op, [x, x], constants, out)
    }

    /// A copy of a value that has a place among others.
    pub(super) fn copy_of(&mut self, value: Value, place: Place) -> Result<Scratch, GpuError> {
        let node = self.target.graph.value(value);
        let Shape { rows, width } = node.shape;
        let scratch = self.claim_rows(rows, width);
        let params = CopyParams { x_width: place.stride, first: place.at, width, last: 0 };
        let plain = Plain::new(Kernel::Copy, params, width.div_ceil(LANES))
            .buffers(&[("x", place.slot()), ("y", Slot::Scratch(scratch))]);
        self.push_plain(plain, value, node);
        Ok(scratch)
    }

    fn copy(&mut self, x: Value, first: u32, last: u32, out: Value) -> Result<Plain, GpuError> {
        let graph = self.target.graph;
        let (x_width, width) = (graph.value(x).shape.width, graph.value(out).shape.width);
        let params = CopyParams { x_width, first, width, last };
        let buffers = [("x", self.whole(x)?), ("y", self.claim(out))];
        Ok(Plain::new(Kernel::Copy, params, width.div_ceil(LANES)).buffers(&buffers))
    }
}

fn unsupported(operation: &'static str) -> GpuError {
    GpuError::Unsupported { operation }
}

/// Floats from one expert's input to the next: none, where they share it.
pub(super) fn expert_stride(graph: &Graph, x: Value, weight: &WeightInfo, slots: u32) -> u32 {
    let apart = slots > 1 && graph.value(x).shape.width == slots * weight.width;
    if apart { weight.width } else { 0 }
}

/// The fragment that reads weights of a format.
pub(super) fn fragment(format: Format) -> Result<Fragment, GpuError> {
    Fragment::format(format).ok_or(unsupported("linear"))
}

/// The first word of each plane of a shard, and the words of a row in each plane. There are at most three planes.
pub(super) struct Planes {
    pub(super) plane_at: [u32; 4],
    pub(super) plane_words: [u32; 4],
}

/// The planes of a shard as kernels read them.
pub(super) fn planes(shard: &Shard, plane_words: [u32; 3]) -> Planes {
    let four = |[a, b, c]: [u32; 3]| [a, b, c, 0];
    Planes { plane_at: four(shard.plane_at), plane_words: four(plane_words) }
}
