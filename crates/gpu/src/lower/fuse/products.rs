//! Products: which of them are computed at once, and what they make of their input on the way.

use rullama_graph::{Node, Op, Rows, Value, Weight};

use super::{CHUNK, DeferredNorm, Fuser};
use crate::lower::stage::{Beside, Epilogue, Input, InputSource, Linear, Stage};

impl Fuser<'_> {
    /// Whether a norm is read by fast products alone, directly or through a factor.
    pub(super) fn is_for_products(&self, value: Value) -> bool {
        let nodes = self.graph.nodes();
        let product = |index: &usize| {
            let weight = nodes.get(*index).and_then(|node| match node.op {
                Op::Linear { weight, .. } | Op::ExpertLinear { weight, .. } => Some(weight),
                _ => None,
            });
            weight.is_some_and(|weight| self.is_fast(weight))
        };
        let consumers = &self.consumers[value.index()];
        consumers.iter().all(|index| match nodes.get(*index).map(|node| node.op) {
            Some(Op::Scale { .. }) => {
                consumers.len() == 1 && self.consumers[*index].iter().all(product) && !self.absorbed[*index]
            }
            _ => product(index),
        })
    }

    /// Whether a norm's one reader adds it to something that is no such norm itself, or comes second.
    pub(super) fn is_branch(&self, value: Value) -> bool {
        let [user] = self.consumers[value.index()][..] else { return false };
        let Some(Node { op: Op::Add { a, b }, shape, .. }) = self.graph.nodes().get(user) else {
            return false;
        };
        self.source(*b) == value
            && self.source(*a) != value
            && shape.width.is_multiple_of(CHUNK)
            && !self.absorbed[user]
    }

    /// The products of `x` that nothing else covers, in runs whose rows follow each other.
    pub(super) fn siblings(&mut self, x: Value, rows: Rows) {
        let x = self.source(x);
        let mut products: Vec<(Weight, Value)> = Vec::new();
        for &index in &self.consumers[x.index()] {
            let Some(node) = self.graph.nodes().get(index) else { continue };
            match node.op {
                Op::Linear { weight, .. }
                    if !self.absorbed[index]
                        && (self.shape.decodes || node.shape.rows == rows)
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
            if let Input::Prologue { keep, .. } = &mut input {
                *keep = None;
            }
        }
        self.computed(x);
    }

    /// Whether two products can share a stage: rows in a row, and readers who know what to do with columns of a value.
    fn stackable(&self, (weight, value): (Weight, Value), (next, next_value): (Weight, Value)) -> bool {
        let heads = |value: Value| {
            self.raw_heads.contains(&value)
                && self.consumers[value.index()].iter().all(|&user| self.absorbed.get(user) == Some(&true))
        };
        self.manifest.follows(self.graph, weight, next) && heads(value) && heads(next_value)
    }

    /// A product with what follows it.
    pub(super) fn product(&mut self, product: usize, out: Value, epilogue: Epilogue) {
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
                    Input::Prologue { source: InputSource::Sum(sum), keep, norm, factor }
                }
                None => Input::Prologue { source: InputSource::Value(of), keep: None, norm, factor },
            };
        }
        match self.sums.get(&x) {
            Some(&sum) if self.can_be_made(self.graph.value(x)) => {
                let keep = (!self.single(x)).then_some(x);
                Input::Prologue { source: InputSource::Sum(sum), keep, norm: None, factor: 1.0 }
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
}
