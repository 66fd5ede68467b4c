//! From operations to stages: a short list of patterns that one kernel computes at once.
//!
//! | pattern | becomes |
//! |---|---|
//! | several products of one input | one product of stacked weights |
//! | `gelu(gate) · up`, a soft cap | the end of the product before it |
//! | `(base + norm(branch)) · scale`, then a norm | for one row: the beginning of the product after it; for many: one stage |
//! | norm, rotation and storing of heads, then attention | one stage |
//! | the embeddings of all layers | one stage |
//!
//! Whatever fits no pattern stays as it is. Every stage computes what its operations would, so a plan without any fusion
//! is the proof of one with all of them.

mod patterns;
mod products;

use std::collections::{HashMap, HashSet};

use rullama_graph::{Graph, Node, Op, Value, Weight};

use super::{
    LoweringTarget, StepShape,
    consumers::Consumers,
    select::widest_made,
    stage::{Attention, Epilogue, Norm, PerLayer, Stage, Sum},
};
use crate::weights::Manifest;

/// The fast products read weights in chunks of this many values.
const CHUNK: u32 = 32;

/// The stages of a graph in steps of one shape.
pub(crate) fn fuse(target: LoweringTarget<'_>, shape: StepShape) -> Vec<Stage> {
    let graph = target.graph;
    let mut fuser = Fuser::new(target, shape);
    fuser.find_per_layer();
    fuser.find_attention(target.cache_format);
    fuser.find_epilogues();
    for index in 0..graph.nodes().len() {
        if !fuser.absorbed[index] {
            fuser.node(index);
        }
    }
    for (_, output) in graph.outputs() {
        fuser.force(*output);
    }
    fuser.stages
}

/// A norm that its readers compute for themselves.
#[derive(Debug, Clone, Copy)]
struct DeferredNorm {
    of: Value,
    norm: Norm,
    factor: f32,
}

struct Fuser<'a> {
    target: LoweringTarget<'a>,
    graph: &'a Graph,
    manifest: &'a Manifest,
    shape: StepShape,
    /// The widest value that a product can make on the way.
    widest_made: u32,
    /// See [`Consumers`].
    source: Vec<Value>,
    consumers: Vec<Vec<usize>>,
    /// Operations that a stage covers which another one stands for.
    absorbed: Vec<bool>,
    /// Stages that stand at the operation which ends their pattern.
    attention: HashMap<usize, Attention>,
    /// Products that only attention reads.
    raw_heads: HashSet<Value>,
    per_layer: HashMap<usize, PerLayer>,
    epilogues: HashMap<usize, (usize, Epilogue)>,
    /// Sums and norms that nothing has computed yet.
    sums: HashMap<Value, Sum>,
    norms: HashMap<Value, DeferredNorm>,
    stages: Vec<Stage>,
}

impl<'a> Fuser<'a> {
    fn new(target: LoweringTarget<'a>, shape: StepShape) -> Self {
        let LoweringTarget { graph, manifest, workgroup_memory, subgroup, .. } = target;
        let widest_made = widest_made(workgroup_memory, subgroup);
        let Consumers { source, consumers } = Consumers::new(graph, shape.decodes);
        let absorbed =
            graph.nodes().iter().map(|node| shape.decodes && matches!(node.op, Op::LastRow { .. })).collect();
        Self {
            target,
            graph,
            manifest,
            shape,
            widest_made,
            source,
            consumers,
            absorbed,
            attention: HashMap::new(),
            raw_heads: HashSet::new(),
            per_layer: HashMap::new(),
            epilogues: HashMap::new(),
            sums: HashMap::new(),
            norms: HashMap::new(),
            stages: Vec::new(),
        }
    }

    fn source(&self, value: Value) -> Value {
        self.source[value.index()]
    }

    /// The operation that makes a value.
    fn maker(&self, value: Value) -> &'a Node {
        self.graph.value(self.source(value))
    }

    /// Whether one operation alone reads a value.
    fn single(&self, value: Value) -> bool {
        self.consumers[self.source(value).index()].len() == 1
    }

    fn absorb(&mut self, values: &[Value]) {
        for &value in values {
            let index = self.source(value).index();
            self.absorbed[index] = true;
        }
    }

    /// Whether a product can make this value on the way: one row, and not too wide.
    fn can_be_made(&self, node: &Node) -> bool {
        self.target.count(self.shape, node.shape.rows) == 1 && node.shape.width <= self.widest_made
    }

    /// Whether the fast products can read a weight.
    fn is_fast(&self, weight: Weight) -> bool {
        self.graph.weight(weight).width.is_multiple_of(CHUNK)
    }

    /// The operation's weight as that of a norm over the whole width.
    fn whole_norm(&self, value: Value) -> Option<(Value, Norm)> {
        match *self.maker(value) {
            Node { op: Op::RmsNorm { x, weight: Some(weight), group, eps }, shape, .. }
                if group == shape.width && group.is_multiple_of(4) =>
            {
                Some((self.source(x), Norm { weight, eps }))
            }
            _ => None,
        }
    }

    fn node(&mut self, index: usize) {
        let value = self.graph.produced(index);
        let node = &self.graph.nodes()[index];
        if let Some(attention) = self.attention.remove(&index) {
            self.stages.push(Stage::Attention(attention));
            return;
        }
        if let Some(per_layer) = self.per_layer.remove(&index) {
            self.stages.push(Stage::PerLayer(per_layer));
            return;
        }
        if let Some((product, epilogue)) = self.epilogues.remove(&index) {
            self.product(product, value, epilogue);
            return;
        }
        match node.op {
            Op::Linear { x, weight, .. } if self.is_fast(weight) => self.siblings(x, node.shape.rows),
            Op::ExpertLinear { weight, .. } if self.is_fast(weight) => {
                self.product(index, value, Epilogue::Store);
            }
            Op::RmsNorm { x, .. } => match self.whole_norm(value) {
                Some((of, norm)) if self.can_be_made(node) && self.is_for_products(value) => {
                    self.norms.insert(value, DeferredNorm { of, norm, factor: 1.0 });
                }
                // The branch of a sum: whoever computes the sum norms it.
                Some(_) if self.is_branch(value) => {}
                Some((of, norm)) if self.sums.contains_key(&of) => {
                    let sum = self.sums.remove(&of).expect("just seen");
                    self.stages.push(Stage::Residual { sum, out: of, normed: Some((norm, value)) });
                }
                _ => self.plain(index, &[x]),
            },
            Op::Scale { x, by } => match self.norms.get(&self.source(x)).copied() {
                Some(norm) => {
                    self.norms.insert(value, DeferredNorm { factor: by, ..norm });
                }
                None => self.plain(index, &[x]),
            },
            Op::Add { a, b } => match self.whole_norm(b) {
                Some((branch, branch_norm)) if self.is_branch(self.source(b)) => {
                    self.force(a);
                    self.force(branch);
                    let base = self.source(a);
                    self.sums.insert(value, Sum { base, branch, branch_norm, scale: None });
                }
                _ => self.plain(index, &[a, b]),
            },
            Op::ScaleBy { x, weight } => match self.sums.get(&self.source(x)).copied() {
                Some(sum)
                    if self.single(x) && sum.scale.is_none() && self.graph.weight(weight).width == 1 =>
                {
                    self.sums.remove(&self.source(x));
                    self.sums.insert(value, Sum { scale: Some(weight), ..sum });
                }
                _ => self.plain(index, &[x]),
            },
            _ => {
                let inputs: Vec<Value> = node.op.inputs().collect();
                self.plain(index, &inputs);
            }
        }
    }

    fn plain(&mut self, index: usize, inputs: &[Value]) {
        for &input in inputs {
            self.force(input);
        }
        self.stages.push(Stage::Plain(index));
    }

    /// Computes a sum that is still deferred, because somebody reads it who cannot do so on the way.
    fn force(&mut self, value: Value) {
        let value = self.source(value);
        if let Some(sum) = self.sums.remove(&value) {
            self.stages.push(Stage::Residual { sum, out: value, normed: None });
        }
    }
}
