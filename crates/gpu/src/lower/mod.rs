//! From a graph to a plan: each operation becomes a dispatch, or one for each shard of its weight.

use std::collections::HashMap;

use rullama_graph::{Ahead, Graph, Node, Op, Rope, Rows, Value, Weight};
use wgpu::util::DeviceExt as _;

use crate::{
    CacheFormat, Gpu, GpuError, Plan,
    kernel::{Access, Fragment, Kernel, KernelSpec, Pipelines},
    plan::Dispatch,
    weights::{Resident, Shard},
};

/// What the plans of one conversation share.
pub(crate) struct Surroundings<'a> {
    pub(crate) gpu: &'a Gpu,
    pub(crate) graph: &'a Graph,
    pub(crate) weights: &'a Resident,
    pub(crate) pipelines: &'a Pipelines,
    /// Keys and values of each cache.
    pub(crate) caches: &'a [(wgpu::Buffer, wgpu::Buffer)],
    pub(crate) cache_format: CacheFormat,
    pub(crate) tokens: &'a wgpu::Buffer,
    /// The table of turns of each way to rotate.
    pub(crate) turns: &'a HashMap<RopeKey, wgpu::Buffer>,
}

/// What tells one way to rotate from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RopeKey {
    pub(crate) head_width: u32,
    pub(crate) base: u32,
    pub(crate) pairs: u32,
    pub(crate) factors: Option<Weight>,
}

impl From<Rope> for RopeKey {
    fn from(rope: Rope) -> Self {
        let Rope { head_width, base, pairs, factors } = rope;
        Self { head_width, base: base.to_bits(), pairs, factors }
    }
}

/// Lowers a graph for steps of up to `most_rows` rows.
pub(crate) fn lower(around: &Surroundings<'_>, most_rows: usize) -> Result<Plan, GpuError> {
    let graph = around.graph;
    let mut lowering = Lowering {
        around,
        most_rows,
        values: vec![None; graph.nodes().len()],
        free: Vec::new(),
        dispatches: Vec::new(),
    };
    let last_uses = graph.last_uses();
    for (index, node) in graph.nodes().iter().enumerate() {
        lowering.node(index, node)?;
        for input in node.op.inputs().filter(|input| last_uses[input.index()] == index) {
            lowering.release(input);
        }
    }
    let output = graph.output();
    let shape = graph.value(output).shape;
    Ok(Plan {
        output: lowering.value(output).clone(),
        output_width: shape.width.into(),
        output_rows: shape.rows,
        dispatches: lowering.dispatches,
        most_rows,
    })
}

struct Lowering<'a> {
    around: &'a Surroundings<'a>,
    most_rows: usize,
    values: Vec<Option<wgpu::Buffer>>,
    /// Buffers that no later operation reads.
    free: Vec<wgpu::Buffer>,
    dispatches: Vec<Dispatch>,
}

/// A dispatch in the making.
struct Draft<'a> {
    spec: KernelSpec,
    /// Buffers by the names that the kernel gives them.
    buffers: &'a [(&'static str, &'a wgpu::Buffer)],
    params: Vec<u32>,
    x: u32,
    rows: Rows,
    z: u32,
}

impl Lowering<'_> {
    fn node(&mut self, index: usize, node: &Node) -> Result<(), GpuError> {
        let (rows, width) = (node.shape.rows, node.shape.width);
        let out = match node.op {
            Op::StoreKv { .. } => None,
            _ => Some(self.claim(node)?),
        };
        let last = u32::from(rows == Rows::Last);
        let around = self.around;
        let graph = around.graph;
        match (node.op, &out) {
            (Op::Embed { table, scale, .. }, Some(out)) => {
                let factor = scale * around.weights.factor(graph, table);
                let packed = around.weights.matrix(graph, table);
                for shard in &packed.shards {
                    let spec =
                        simple(Kernel::Embed).with(Fragment::Planes).with(fragment(packed.packing.format)?);
                    let mut params = planes(shard, packed.packing.plane_words);
                    params.extend([width, shard.rows.start as u32, rows_of(shard), factor.to_bits()]);
                    let buffers = &[("weight", &shard.buffer), ("tokens", around.tokens), ("y", out)];
                    self.push(Draft { spec, buffers, params, x: 1, rows, z: 1 });
                }
            }
            (Op::Linear { x, weight, .. }, Some(out)) => self.linear(x, weight, None, out, node)?,
            (Op::ExpertLinear { x, routing, weight, .. }, Some(out)) => {
                self.linear(x, weight, Some(routing), out, node)?;
            }
            (Op::RmsNorm { x, weight, group, eps }, Some(out)) => {
                let ones;
                let weight = match weight {
                    Some(weight) => around.weights.vector(graph, weight),
                    None => {
                        ones = self.ones(group);
                        &ones
                    }
                };
                let x = self.value(x).clone();
                let params = vec![group, width / group, eps.to_bits()];
                let spec = simple(Kernel::RmsNorm);
                self.push(Draft {
                    spec,
                    buffers: &[("weight", weight), ("x", &x), ("y", out)],
                    params,
                    x: width / group,
                    rows,
                    z: 1,
                });
            }
            (Op::Rope { x, rope }, Some(out)) => {
                let x = self.value(x).clone();
                let turns = &around.turns[&RopeKey::from(rope)];
                let pairs = width / 2;
                let params = vec![rope.head_width / 2, pairs, last];
                let spec = simple(Kernel::Rope);
                let x_groups = pairs.div_ceil(LANES);
                self.push(Draft {
                    spec,
                    buffers: &[("turns", turns), ("x", &x), ("y", out)],
                    params,
                    x: x_groups,
                    rows,
                    z: 1,
                });
            }
            (Op::StoreKv { k, v, cache }, _) => {
                let pairs = graph.caches()[cache.index()].width() / 2;
                let (k, v) = (self.value(k).clone(), self.value(v).clone());
                let (keys, values) = &around.caches[cache.index()];
                let spec = simple(Kernel::StoreKv).with(around.cache_format.store());
                let buffers = &[("k", &k), ("v", &v), ("keys", keys), ("values", values)];
                let x = pairs.div_ceil(LANES);
                self.push(Draft { spec, buffers, params: vec![pairs], x, rows: Rows::Step, z: 1 });
            }
            (Op::Attend { q, cache, shape }, Some(out)) => {
                if shape.mask.ahead != Ahead::Nothing {
                    return Err(GpuError::Unsupported { operation: "attend" });
                }
                let q = self.value(q).clone();
                let (keys, values) = &around.caches[cache.index()];
                let pairs = shape.head_width / 2;
                let spec = simple(Kernel::Attend)
                    .with(around.cache_format.load())
                    .constant("PAIRS", pairs.div_ceil(ATTEND_LANES));
                let window = shape.mask.window.unwrap_or(0);
                let params = vec![shape.heads, shape.kv_heads, pairs, window, last];
                let buffers = &[("keys", keys), ("q", &q), ("y", out), ("values", values)];
                self.push(Draft { spec, buffers, params, x: shape.heads, rows, z: 1 });
            }
            (Op::Add { a, b }, Some(out)) => self.elementwise(Fragment::Add, a, b, 0.0, out, node),
            (Op::Mul { a, b }, Some(out)) => self.elementwise(Fragment::Mul, a, b, 0.0, out, node),
            (Op::GeluMul { gate, up }, Some(out)) => {
                self.elementwise(Fragment::GeluMul, gate, up, 0.0, out, node);
            }
            (Op::Scale { x, by }, Some(out)) => self.elementwise(Fragment::Scale, x, x, by, out, node),
            (Op::SoftCap { x, cap }, Some(out)) => self.elementwise(Fragment::SoftCap, x, x, cap, out, node),
            (Op::ScaleBy { x, weight }, Some(out)) => {
                let x = self.value(x).clone();
                let weight = around.weights.vector(graph, weight);
                let spec = simple(Kernel::Elementwise).with(Fragment::Mul);
                let params = vec![width, 0, 0];
                let x_groups = width.div_ceil(LANES);
                self.push(Draft {
                    spec,
                    buffers: &[("a", &x), ("b", weight), ("y", out)],
                    params,
                    x: x_groups,
                    rows,
                    z: 1,
                });
            }
            (Op::Columns { x, first, .. }, Some(out)) => self.copy(x, first, 0, out, node),
            (Op::LastRow { x }, Some(out)) => self.copy(x, 0, 1, out, node),
            (Op::Route { logits, used }, Some(out)) => {
                let experts = graph.value(logits).shape.width;
                let logits = self.value(logits).clone();
                let spec = simple(Kernel::Route);
                let params = vec![experts, used];
                self.push(Draft {
                    spec,
                    buffers: &[("logits", &logits), ("y", out)],
                    params,
                    x: 1,
                    rows,
                    z: 1,
                });
            }
            (Op::Combine { x, routing, scale }, Some(out)) => {
                let used = graph.value(routing).shape.width / 2;
                let (x, routing) = (self.value(x).clone(), self.value(routing).clone());
                let ones;
                let scale = match scale {
                    Some(scale) => around.weights.vector(graph, scale),
                    None => {
                        // As many as a model may have experts.
                        ones = self.ones(65_536);
                        &ones
                    }
                };
                let spec = simple(Kernel::Combine);
                let buffers = &[("x", &x), ("scale", scale), ("y", out), ("routing", &routing)];
                let x_groups = width.div_ceil(LANES);
                self.push(Draft { spec, buffers, params: vec![width, used], x: x_groups, rows, z: 1 });
            }
            (_, None) => unreachable!("only storing keys and values produces nothing"),
        }
        self.values[index] = out;
        Ok(())
    }

    fn linear(
        &mut self,
        x: Value,
        weight: Weight,
        routing: Option<Value>,
        out: &wgpu::Buffer,
        node: &Node,
    ) -> Result<(), GpuError> {
        let around = self.around;
        let graph = around.graph;
        let info = graph.weight(weight);
        let packed = around.weights.matrix(graph, weight);
        let x_width = graph.value(x).shape.width;
        let slots = routing.map_or(1, |routing| graph.value(routing).shape.width / 2);
        let x_slot = if slots > 1 && x_width == slots * info.width { info.width } else { 0 };
        let x = self.value(x).clone();
        let routing = routing.map(|routing| self.value(routing).clone());
        for shard in &packed.shards {
            let select = if routing.is_some() { Fragment::Routed } else { Fragment::Dense };
            let spec = simple(Kernel::Linear)
                .with(Fragment::Planes)
                .with(fragment(packed.packing.format)?)
                .with(select);
            let mut params = planes(shard, packed.packing.plane_words);
            params.extend([info.width, info.rows, info.first_row, info.tensor_rows]);
            params.extend([shard.rows.start as u32, rows_of(shard), x_width, x_slot]);
            params.extend([node.shape.width, 2 * slots, around.weights.factor(graph, weight).to_bits()]);
            let mut buffers = vec![("weight", &shard.buffer), ("x", &x), ("y", out)];
            buffers.extend(routing.as_ref().map(|routing| ("routing", routing)));
            let (x, rows) = (info.rows.div_ceil(LINEAR_OUTPUTS), node.shape.rows);
            self.push(Draft { spec, buffers: &buffers, params, x, rows, z: slots });
        }
        Ok(())
    }

    fn elementwise(
        &mut self,
        op: Fragment,
        a: Value,
        b: Value,
        constant: f32,
        out: &wgpu::Buffer,
        node: &Node,
    ) {
        let (a, b) = (self.value(a).clone(), self.value(b).clone());
        let width = node.shape.width;
        let spec = simple(Kernel::Elementwise).with(Fragment::Gelu).with(op);
        let params = vec![width, 1, constant.to_bits()];
        let (x, rows) = (width.div_ceil(LANES), node.shape.rows);
        self.push(Draft { spec, buffers: &[("a", &a), ("b", &b), ("y", out)], params, x, rows, z: 1 });
    }

    fn copy(&mut self, x: Value, first: u32, last: u32, out: &wgpu::Buffer, node: &Node) {
        let x_width = self.around.graph.value(x).shape.width;
        let x = self.value(x).clone();
        let width = node.shape.width;
        let spec = simple(Kernel::Copy);
        let params = vec![x_width, first, width, last];
        let (x_groups, rows) = (width.div_ceil(LANES), node.shape.rows);
        self.push(Draft { spec, buffers: &[("x", &x), ("y", out)], params, x: x_groups, rows, z: 1 });
    }

    fn push(&mut self, draft: Draft<'_>) {
        let gpu = self.around.gpu;
        let pipeline = self.around.pipelines.get(gpu, &draft.spec);
        let mut params = draft.params;
        // A uniform of a struct is as long as a multiple of its alignment.
        params.resize(params.len().next_multiple_of(4), 0);
        let params = gpu.device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
            label: Some("parameters"),
            contents: bytemuck::cast_slice(&params),
            usage: wgpu::BufferUsages::UNIFORM,
        });
        let entries: Vec<wgpu::BindGroupEntry<'_>> = pipeline
            .bindings
            .iter()
            .map(|binding| {
                let named = draft.buffers.iter().find(|(name, _)| *name == binding.name);
                let buffer = match binding.access {
                    Access::Uniform => &params,
                    _ => named.unwrap_or_else(|| panic!("`{}` of {}", binding.name, draft.spec)).1,
                };
                wgpu::BindGroupEntry { binding: binding.number, resource: buffer.as_entire_binding() }
            })
            .collect();
        let label = draft.spec.to_string();
        let bind_group = gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(&label),
            layout: &pipeline.layout,
            entries: &entries,
        });
        let (x, rows, z) = (draft.x, draft.rows, draft.z);
        self.dispatches.push(Dispatch { label, pipeline: pipeline.pipeline, bind_group, x, rows, z });
    }

    fn value(&self, value: Value) -> &wgpu::Buffer {
        self.values[value.index()].as_ref().expect("computed before it is used, and kept until its last use")
    }

    /// A buffer for what a node produces: one that is free and large enough, or a new one.
    fn claim(&mut self, node: &Node) -> Result<wgpu::Buffer, GpuError> {
        let bytes = 4 * node.shape.rows.count(self.most_rows) as u64 * u64::from(node.shape.width);
        let fits = |buffer: &wgpu::Buffer| (bytes..=4 * bytes.max(16)).contains(&buffer.size());
        match self.free.iter().position(fits) {
            Some(index) => Ok(self.free.swap_remove(index)),
            None => self.around.gpu.storage("value", bytes),
        }
    }

    fn release(&mut self, value: Value) {
        self.free.extend(self.values[value.index()].take());
    }

    fn ones(&self, count: u32) -> wgpu::Buffer {
        self.around.gpu.device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
            label: Some("ones"),
            contents: bytemuck::cast_slice(&vec![1.0f32; count as usize]),
            usage: wgpu::BufferUsages::STORAGE,
        })
    }
}

/// The lanes of most workgroups: rows here are of that order.
const LANES: u32 = 64;

/// The lanes of a linear operation's workgroup, the most that WebGPU guarantees, and how many share an output. A
/// row of weights is a few hundred words, and every barrier costs as much as several of them.
const LINEAR_LANES: u32 = 256;
const LINEAR_PARTS: u32 = 32;

/// The lanes of attention's workgroup: keys that are scored at once.
const ATTEND_LANES: u32 = 256;

/// Outputs of a linear operation's workgroup. Enough that no grid is longer than WebGPU allows: a vocabulary of
/// 262,144 in eights is half of 65,535.
const LINEAR_OUTPUTS: u32 = LINEAR_LANES / LINEAR_PARTS;

fn simple(kernel: Kernel) -> KernelSpec {
    let spec = KernelSpec::new(kernel).with(Fragment::Reduce);
    match kernel {
        Kernel::Linear => spec.constant("LANES", LINEAR_LANES).constant("PARTS", LINEAR_PARTS),
        Kernel::Attend => spec.constant("LANES", ATTEND_LANES),
        _ => spec.constant("LANES", LANES),
    }
}

fn fragment(format: rullama_gguf::Format) -> Result<Fragment, GpuError> {
    Fragment::format(format).ok_or(GpuError::Unsupported { operation: "linear" })
}

fn planes(shard: &Shard, words: [u32; 3]) -> Vec<u32> {
    let [a, b, c] = shard.plane_at;
    let [x, y, z] = words;
    vec![a, b, c, 0, x, y, z, 0]
}

fn rows_of(shard: &Shard) -> u32 {
    (shard.rows.end - shard.rows.start) as u32
}
