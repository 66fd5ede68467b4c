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

use std::collections::{HashMap, HashSet};

use rullama_graph::{Graph, Node, Op, Rows, Value, Weight};

use super::stage::{Attention, Beside, Epilogue, From, Input, Linear, Norm, PerLayer, RawHeads, Stage, Sum};
use crate::{CacheFormat, weights::Manifest};

/// The fast products read weights in chunks of this many values.
const CHUNK: u32 = 32;

/// The stages of a graph in a step of one row, or of many.
pub(crate) fn fuse(
    graph: &Graph,
    manifest: &Manifest,
    cache: CacheFormat,
    one_row: bool,
    widest_made: u32,
) -> Vec<Stage> {
    let mut fuser = Fuser::new(graph, manifest, one_row, widest_made);
    fuser.find_per_layer();
    fuser.find_attention(cache);
    fuser.find_epilogues();
    for index in 0..graph.nodes().len() {
        if !fuser.absorbed[index] {
            fuser.node(index);
        }
    }
    fuser.force(graph.output());
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
    graph: &'a Graph,
    manifest: &'a Manifest,
    one_row: bool,
    /// The widest value that a product can make on the way.
    widest_made: u32,
    /// What stands for each value: where there is one row, the last row of a value is the value.
    source: Vec<Value>,
    /// The operations that read each value.
    users: Vec<Vec<usize>>,
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
    fn new(graph: &'a Graph, manifest: &'a Manifest, one_row: bool, widest_made: u32) -> Self {
        let nodes = graph.nodes();
        let mut source: Vec<Value> = Vec::with_capacity(nodes.len());
        let mut users = vec![Vec::new(); nodes.len()];
        let mut absorbed = vec![false; nodes.len()];
        for (index, node) in nodes.iter().enumerate() {
            match node.op {
                Op::LastRow { x } if one_row => {
                    source.push(source[x.index()]);
                    absorbed[index] = true;
                }
                _ => {
                    source.push(graph.produced(index));
                    node.op.inputs().for_each(|input| users[source[input.index()].index()].push(index));
                }
            }
        }
        users[source[graph.output().index()].index()].push(nodes.len());
        Self {
            graph,
            manifest,
            one_row,
            widest_made,
            source,
            users,
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
        self.users[self.source(value).index()].len() == 1
    }

    fn absorb(&mut self, values: &[Value]) {
        for &value in values {
            let index = self.source(value).index();
            self.absorbed[index] = true;
        }
    }

    /// Whether a product can make this value on the way: one row, and not too wide.
    fn can_be_made(&self, node: &Node) -> bool {
        (self.one_row || node.shape.rows == Rows::Last) && node.shape.width <= self.widest_made
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

    fn find_per_layer(&mut self) {
        for (index, node) in self.graph.nodes().iter().enumerate() {
            let Op::Scale { x: sum, by } = node.op else { continue };
            let Op::Add { a, b } = self.maker(sum).op else { continue };
            let Op::RmsNorm { x: scaled, weight: Some(weight), group, eps } = self.maker(a).op else {
                continue;
            };
            let Op::Embed { table, scale, .. } = self.maker(b).op else { continue };
            let Op::Scale { x: projected, by: before } = self.maker(scaled).op else { continue };
            let whole = self.manifest.packed(self.graph, table).shards.len() == 1;
            let alone = [sum, a, b, scaled].into_iter().all(|value| self.single(value));
            if !whole || !alone || !group.is_multiple_of(CHUNK) {
                continue;
            }
            let (projected, out) = (self.source(projected), self.graph.produced(index));
            let norm = Norm { weight, eps };
            let scale = scale * self.manifest.factor(self.graph, table);
            self.absorb(&[sum, a, b, scaled]);
            self.per_layer.insert(index, PerLayer { projected, before, norm, group, table, scale, by, out });
        }
    }

    fn find_attention(&mut self, format: CacheFormat) {
        let mut stores = HashMap::new();
        for (index, node) in self.graph.nodes().iter().enumerate() {
            match node.op {
                Op::StoreKv { k, v, cache } => {
                    stores.insert(cache, (index, k, v));
                }
                Op::Attend { q, cache, shape } if format.fits(shape.head_width) => {
                    // A store that no earlier layer has taken belongs to this one.
                    let store = stores.remove(&cache);
                    let Some((raw_q, rope)) = self.turned_heads(q) else { continue };
                    let mut covered = vec![q, raw_q.0];
                    let mut kv = None;
                    if let Some((_, k, v)) = store {
                        let Some((raw_k, k_rope)) = self.turned_heads(k) else { continue };
                        let Op::RmsNorm { x: raw_v, weight: None, group, eps } = self.maker(v).op else {
                            continue;
                        };
                        // One kernel norms all three.
                        let same_eps = [raw_k.1.eps, eps].iter().all(|eps| *eps == raw_q.1.eps);
                        if k_rope != rope || !same_eps || group != shape.head_width || !self.single(v) {
                            continue;
                        }
                        let raw_v = RawHeads { value: self.source(raw_v), norm: None, eps };
                        kv = Some([raw_k.1, raw_v]);
                        covered.extend([k, raw_k.0, v]);
                    }
                    self.absorb(&covered);
                    if let Some((at, ..)) = store {
                        self.absorbed[at] = true;
                    }
                    self.raw_heads.insert(raw_q.1.value);
                    self.raw_heads.extend(kv.iter().flatten().map(|heads| heads.value));
                    let (out, rows) = (self.graph.produced(index), node.shape.rows);
                    self.attention.insert(index, Attention { q: raw_q.1, kv, rope, cache, shape, out, rows });
                }
                _ => {}
            }
        }
    }

    /// Heads that are normed and turned: the value between the two, what they are made from, and how they are turned.
    fn turned_heads(&self, heads: Value) -> Option<((Value, RawHeads), rullama_graph::Rope)> {
        let Op::Rope { x: normed, rope } = self.maker(heads).op else { return None };
        let Op::RmsNorm { x: raw, weight: Some(weight), group, eps } = self.maker(normed).op else {
            return None;
        };
        let fits = group == rope.head_width && self.single(heads) && self.single(normed);
        let raw = RawHeads { value: self.source(raw), norm: Some(weight), eps };
        fits.then_some(((normed, raw), rope))
    }

    fn find_epilogues(&mut self) {
        for (index, node) in self.graph.nodes().iter().enumerate() {
            let (product, epilogue, covered) = match node.op {
                Op::SoftCap { x, cap } => (x, Epilogue::SoftCap(cap), vec![x]),
                Op::GeluMul { gate, up } => match (self.maker(gate).op, self.maker(up).op) {
                    (Op::Linear { x, weight, .. }, Op::Linear { x: other_x, weight: other, .. })
                        if self.source(x) == self.source(other_x)
                            && self.single(up)
                            && self.manifest.follows(self.graph, weight, other)
                            && self.manifest.whole_matrices(self.graph, weight) =>
                    {
                        (gate, Epilogue::GeluPair { up: other }, vec![gate, up])
                    }
                    (
                        Op::ExpertLinear { x, weight, routing, .. },
                        Op::ExpertLinear { x: other_x, weight: other, routing: other_routing, .. },
                    ) if self.source(x) == self.source(other_x)
                        && routing == other_routing
                        && self.single(up)
                        && self.follows_in_matrix(weight, other)
                        && self.manifest.whole_matrices(self.graph, weight) =>
                    {
                        (gate, Epilogue::GeluPair { up: other }, vec![gate, up])
                    }
                    (Op::Linear { .. }, Op::Columns { x: other, first, .. }) if self.single(up) => {
                        let other = self.source(other);
                        (gate, Epilogue::GeluOther { other, first }, vec![gate, up])
                    }
                    _ => continue,
                },
                _ => continue,
            };
            let Some(weight) = self.maker(product).op.weight() else { continue };
            let is_product = matches!(self.maker(product).op, Op::Linear { .. } | Op::ExpertLinear { .. });
            if is_product && self.single(product) && self.is_fast(weight) {
                let product = self.source(product).index();
                self.absorb(&covered);
                self.epilogues.insert(index, (product, epilogue));
            }
        }
    }

    /// Whether the rows of `next` follow those of `weight` in every expert's matrix.
    fn follows_in_matrix(&self, weight: Weight, next: Weight) -> bool {
        let (info, other) = (self.graph.weight(weight), self.graph.weight(next));
        info.tensor == other.tensor
            && info.first_row + info.rows == other.first_row
            && info.rows == other.rows
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
                Some(sum) if self.single(x) && sum.scale.is_none() => {
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

    /// Whether a norm is read by fast products alone, directly or through a factor.
    fn is_for_products(&self, value: Value) -> bool {
        let nodes = self.graph.nodes();
        let product = |index: &usize| {
            let weight = nodes.get(*index).and_then(|node| match node.op {
                Op::Linear { weight, .. } | Op::ExpertLinear { weight, .. } => Some(weight),
                _ => None,
            });
            weight.is_some_and(|weight| self.is_fast(weight))
        };
        let users = &self.users[value.index()];
        users.iter().all(|index| match nodes.get(*index).map(|node| node.op) {
            Some(Op::Scale { .. }) => {
                users.len() == 1 && self.users[*index].iter().all(product) && !self.absorbed[*index]
            }
            _ => product(index),
        })
    }

    /// Whether a norm's one reader adds it to something that is no such norm itself, or comes second.
    fn is_branch(&self, value: Value) -> bool {
        let [user] = self.users[value.index()][..] else { return false };
        let Some(Node { op: Op::Add { a, b }, shape, .. }) = self.graph.nodes().get(user) else {
            return false;
        };
        self.source(*b) == value
            && self.source(*a) != value
            && shape.width.is_multiple_of(CHUNK)
            && !self.absorbed[user]
    }

    /// The products of `x` that nothing else covers, in runs whose rows follow each other.
    fn siblings(&mut self, x: Value, rows: Rows) {
        let x = self.source(x);
        let mut products: Vec<(Weight, Value)> = Vec::new();
        for &index in &self.users[x.index()] {
            let Some(node) = self.graph.nodes().get(index) else { continue };
            match node.op {
                Op::Linear { weight, .. }
                    if !self.absorbed[index]
                        && (self.one_row || node.shape.rows == rows)
                        && self.is_fast(weight) =>
                {
                    products.push((weight, self.graph.produced(index)));
                }
                _ => {}
            }
        }
        products.sort_by_key(|&(weight, _)| self.manifest.place(self.graph, weight));
        let mut input = self.input(x);
        let mut runs: Vec<Vec<(Weight, Value)>> = Vec::new();
        for (weight, value) in products {
            self.absorbed[value.index()] = true;
            match runs.last_mut() {
                Some(run) if self.stackable(run[run.len() - 1], (weight, value)) => run.push((weight, value)),
                _ => runs.push(vec![(weight, value)]),
            }
        }
        // Attention wants keys and queries in one buffer, whatever their formats.
        let all = runs.iter().flatten();
        let run_of = |value: Value| runs.iter().position(|run| run.iter().any(|&(_, other)| other == value));
        let together = self.attention.values().any(|attention| {
            let k = attention.kv.and_then(|[k, _]| run_of(k.value));
            run_of(attention.q.value).zip(k).is_some_and(|(q, k)| q != k)
        });
        let width: u32 = all.map(|&(weight, _)| self.graph.weight(weight).rows).sum();
        let first = runs[0][0].1;
        let mut column = 0;
        for outputs in runs {
            let beside = together.then_some(Beside { first, column, width });
            column += outputs.iter().map(|&(weight, _)| self.graph.weight(weight).rows).sum::<u32>();
            let linear = Linear { input, outputs, routing: None, epilogue: Epilogue::Store, rows, beside };
            self.stages.push(Stage::Linear(linear));
            // The first keeps the sum for all.
            if let Input::Made { keep, .. } = &mut input {
                *keep = None;
            }
        }
        self.computed(x);
    }

    /// Whether two products can share a stage: rows in a row, and readers who know what to do with columns of a value.
    fn stackable(&self, (weight, value): (Weight, Value), (next, next_value): (Weight, Value)) -> bool {
        let heads = |value: Value| {
            self.raw_heads.contains(&value)
                && self.users[value.index()].iter().all(|&user| self.absorbed[user])
        };
        self.manifest.follows(self.graph, weight, next) && heads(value) && heads(next_value)
    }

    /// A product with what follows it.
    fn product(&mut self, product: usize, out: Value, epilogue: Epilogue) {
        let node = &self.graph.nodes()[product];
        let (x, weight, routing) = match node.op {
            Op::Linear { x, weight, .. } => (x, weight, None),
            Op::ExpertLinear { x, weight, routing, .. } => (x, weight, Some(self.source(routing))),
            _ => unreachable!("only products have epilogues"),
        };
        if let Some(routing) = routing {
            self.force(routing);
        }
        if let Epilogue::GeluOther { other, .. } = epilogue {
            self.force(other);
        }
        let x = self.source(x);
        let input = self.input(x);
        let outputs = vec![(weight, out)];
        let (rows, beside) = (node.shape.rows, None);
        self.stages.push(Stage::Linear(Linear { input, outputs, routing, epilogue, rows, beside }));
        self.computed(x);
    }

    /// What a product of `x` reads.
    fn input(&mut self, x: Value) -> Input {
        if let Some(&DeferredNorm { of, norm, factor }) = self.norms.get(&x) {
            let norm = Some(norm);
            return match self.sums.get(&of) {
                Some(&sum) => {
                    let keep = (!self.single(of)).then_some(of);
                    Input::Made { from: From::Sum(sum), keep, norm, factor }
                }
                None => Input::Made { from: From::Value(of), keep: None, norm, factor },
            };
        }
        match self.sums.get(&x) {
            Some(&sum) if self.can_be_made(self.graph.value(x)) => {
                let keep = (!self.single(x)).then_some(x);
                Input::Made { from: From::Sum(sum), keep, norm: None, factor: 1.0 }
            }
            _ => {
                self.force(x);
                Input::Value(x)
            }
        }
    }

    /// A sum that the products of `x` have kept need not be computed again.
    fn computed(&mut self, x: Value) {
        let of = self.norms.get(&x).map_or(x, |norm| norm.of);
        if self.sums.contains_key(&of) && (x == of || !self.single(of)) {
            self.sums.remove(&of);
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
