//! Fusion: finds groups of operations that one kernel can compute and makes a stage of each.
//!
//! | pattern | becomes |
//! |---|---|
//! | several products of one input | one product of stacked weights |
//! | `gelu(gate) · up`, a soft cap or a clamp, after a product | the epilogue of that product |
//! | `(base + norm(branch)) · scale`, then a norm | one row: the prologue of the next product; several rows: one stage |
//! | norm, rotation and storing of heads, then attention | one stage |
//! | the per-layer embeddings | one stage |
//!
//! Any other operation is a stage of its own. Tests check that a fused plan gives the results of an unfused one.

mod patterns;
mod products;

use std::collections::{HashMap, HashSet};

use rullama_graph::{Graph, Node, Op, Value, Weight};

use super::{
    LoweringTarget, StepShape,
    consumers::Consumers,
    select::widest_prologue,
    stage::{Attention, Epilogue, Norm, PerLayer, Stage, Sum},
};
use crate::{tuning::MOST_DECODED_ROWS, weights::Manifest};

/// Weight values that the fused product kernels read at once.
const CHUNK: u32 = 32;

/// Input values that the product kernels of many rows read at once.
const QUAD: u32 = 4;

/// Divides a graph into stages, for steps of one shape.
pub(crate) fn fuse(target: LoweringTarget<'_>, shape: StepShape) -> Vec<Stage> {
    let graph = target.graph;
    let mut fuser = Fuser::new(target, shape);
    fuser.find_per_layer();
    fuser.find_attention(target.cache_format);
    fuser.find_epilogues();
    for index in 0..graph.nodes().len() {
        if !fuser.covered[index] {
            fuser.node(index);
        }
    }
    for (_, output) in graph.outputs() {
        fuser.materialise(*output);
    }
    fuser.stages
}

/// A norm that is not computed yet: its consumers compute it in their prologues.
#[derive(Debug, Clone, Copy)]
struct DeferredNorm {
    of: Value,
    norm: Norm,
    factor: f32,
}

/// The stages so far, and what is known about operations that are not yet in one.
struct Fuser<'a> {
    target: LoweringTarget<'a>,
    graph: &'a Graph,
    manifest: &'a Manifest,
    shape: StepShape,
    /// The maximum width of an input that a prologue can compute.
    widest_prologue: u32,
    /// Which operations read each value.
    uses: Consumers,
    /// Operations that are part of another operation's stage.
    covered: Vec<bool>,
    patterns: Patterns,
    deferred: Deferred,
    stages: Vec<Stage>,
}

/// Stages found in advance, by the index of the last operation of their pattern.
#[derive(Default)]
struct Patterns {
    attention: HashMap<usize, Attention>,
    /// Products of queries, keys and values that only fused attention reads.
    raw_heads: HashSet<Value>,
    per_layer: HashMap<usize, PerLayer>,
    /// Epilogues, each with the index of its product.
    epilogues: HashMap<usize, (usize, Epilogue)>,
}

/// Residual sums and norms that are deferred to their consumers.
#[derive(Default)]
struct Deferred {
    sums: HashMap<Value, Sum>,
    norms: HashMap<Value, DeferredNorm>,
}

impl<'a> Fuser<'a> {
    fn new(target: LoweringTarget<'a>, shape: StepShape) -> Self {
        let LoweringTarget { graph, manifest, workgroup_memory, subgroup, .. } = target;
        let widest_prologue = widest_prologue(workgroup_memory, subgroup);
        let uses = Consumers::new(graph, shape.decodes);
        let covered =
            graph.nodes().iter().map(|node| shape.decodes && matches!(node.op, Op::LastRow { .. })).collect();
        Self {
            target,
            graph,
            manifest,
            shape,
            widest_prologue,
            uses,
            covered,
            patterns: Patterns::default(),
            deferred: Deferred::default(),
            stages: Vec::new(),
        }
    }

    /// See [`Consumers::source`].
    fn source(&self, value: Value) -> Value {
        self.uses.source[value.index()]
    }

    /// The operation that produces a value.
    fn producer(&self, value: Value) -> &'a Node {
        self.graph.value(self.source(value))
    }

    /// True if exactly one operation reads a value.
    fn has_one_consumer(&self, value: Value) -> bool {
        self.consumers(self.source(value)).len() == 1
    }

    /// See [`Consumers::consumers`].
    fn consumers(&self, value: Value) -> &[usize] {
        &self.uses.consumers[value.index()]
    }

    /// Marks the operations that produce these values as part of another stage.
    fn cover(&mut self, values: &[Value]) {
        for &value in values {
            let index = self.source(value).index();
            self.covered[index] = true;
        }
    }

    /// True if a prologue can compute this value: the step has one row of it, and it fits into workgroup memory.
    fn fits_prologue(&self, node: &Node) -> bool {
        self.target.count(self.shape, node.shape.rows) == 1 && node.shape.width <= self.widest_prologue
    }

    /// True if an operation is a product that the fused kernels support. Those of many rows take the input of one matrix in
    /// quads, with zeros up to a whole chunk. All others need whole chunks.
    fn is_fused_product(&self, node: &Node) -> bool {
        let width = |weight: Weight| self.graph.weight(weight).width;
        match node.op {
            Op::Linear { weight, .. } => {
                let many = self.target.count(self.shape, node.shape.rows) > MOST_DECODED_ROWS;
                width(weight).is_multiple_of(if many { QUAD } else { CHUNK })
            }
            Op::ExpertLinear { weight, .. } => width(weight).is_multiple_of(CHUNK),
            _ => false,
        }
    }

    /// If this value is a norm over the whole row: its input, weight and eps.
    fn whole_norm(&self, value: Value) -> Option<(Value, Norm)> {
        match *self.producer(value) {
            Node { op: Op::RmsNorm { x, weight: Some(weight), group, eps }, shape, .. }
                if group == shape.width && group.is_multiple_of(4) =>
            {
                Some((self.source(x), Norm { weight, eps }))
            }
            _ => None,
        }
    }

    /// Emits the stage of an operation, unless its consumers will compute it.
    fn node(&mut self, index: usize) {
        let value = self.graph.produced(index);
        let node = &self.graph.nodes()[index];
        if let Some(attention) = self.patterns.attention.remove(&index) {
            self.stages.push(Stage::Attention(attention));
            return;
        }
        if let Some(per_layer) = self.patterns.per_layer.remove(&index) {
            self.stages.push(Stage::PerLayer(per_layer));
            return;
        }
        if let Some((product, epilogue)) = self.patterns.epilogues.remove(&index) {
            self.product(product, value, epilogue);
            return;
        }
        match node.op {
            Op::Linear { x, .. } if self.is_fused_product(node) => self.stack_products(x, node.shape.rows),
            Op::ExpertLinear { .. } if self.is_fused_product(node) => {
                self.product(index, value, Epilogue::Store);
            }
            Op::RmsNorm { x, .. } => match self.whole_norm(value) {
                Some((of, norm)) if self.fits_prologue(node) && self.only_products_read(value) => {
                    self.deferred.norms.insert(value, DeferredNorm { of, norm, factor: 1.0 });
                }
                // The branch of a residual sum: the stage that computes the sum also computes this norm.
                Some(_) if self.is_branch(value) => {}
                Some((of, norm)) if self.deferred.sums.contains_key(&of) => {
                    let sum = self.deferred.sums.remove(&of).expect("checked in the guard");
                    self.stages.push(Stage::Residual { sum, out: of, normed: Some((norm, value)) });
                }
                _ => self.plain(index, &[x]),
            },
            Op::Scale { x, by } => match self.deferred.norms.get(&self.source(x)).copied() {
                Some(norm) => {
                    self.deferred.norms.insert(value, DeferredNorm { factor: by, ..norm });
                }
                None => self.plain(index, &[x]),
            },
            Op::Add { a, b } => match self.whole_norm(b) {
                Some((branch, branch_norm)) if self.is_branch(self.source(b)) => {
                    self.materialise(a);
                    self.materialise(branch);
                    let base = self.source(a);
                    self.deferred.sums.insert(value, Sum { base, branch, branch_norm, scale: None });
                }
                _ => self.plain(index, &[a, b]),
            },
            Op::ScaleBy { x, weight } => match self.deferred.sums.get(&self.source(x)).copied() {
                Some(sum)
                    if self.has_one_consumer(x)
                        && sum.scale.is_none()
                        && self.graph.weight(weight).width == 1 =>
                {
                    self.deferred.sums.remove(&self.source(x));
                    self.deferred.sums.insert(value, Sum { scale: Some(weight), ..sum });
                }
                _ => self.plain(index, &[x]),
            },
            _ => {
                let inputs: Vec<Value> = node.op.inputs().collect();
                self.plain(index, &inputs);
            }
        }
    }

    /// Emits an operation as a stage of its own, after the deferred sums that it reads.
    fn plain(&mut self, index: usize, inputs: &[Value]) {
        for &input in inputs {
            self.materialise(input);
        }
        self.stages.push(Stage::Plain(index));
    }

    /// Emits a stage for a deferred sum whose consumer has no prologue.
    fn materialise(&mut self, value: Value) {
        let value = self.source(value);
        if let Some(sum) = self.deferred.sums.remove(&value) {
            self.stages.push(Stage::Residual { sum, out: value, normed: None });
        }
    }
}
