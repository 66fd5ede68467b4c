//! Products: products of one input share a stage, and sums and norms become prologues.

use rullama_graph::{Node, Op, Rows, Value, Weight};

use super::{CHUNK, DeferredNorm, Fuser};
use crate::lower::stage::{ColumnRange, Epilogue, Input, InputSource, Linear, Stage};

impl Fuser<'_> {
    /// True if only products read a norm, directly or after a constant scale, so that their prologues can compute it.
    pub(super) fn only_products_read(&self, value: Value) -> bool {
        let nodes = self.graph.nodes();
        let product = |index: &usize| nodes.get(*index).is_some_and(|node| self.is_fused_product(node));
        let consumers = self.consumers(value);
        consumers.iter().all(|index| match nodes.get(*index).map(|node| node.op) {
            Some(Op::Scale { .. }) => {
                consumers.len() == 1
                    && self.uses.consumers[*index].iter().all(product)
                    && !self.covered[*index]
            }
            _ => product(index),
        })
    }

    /// True if the norm's only consumer is an add whose second operand is this norm, and whose first is not.
    pub(super) fn is_branch(&self, value: Value) -> bool {
        let [consumer] = *self.consumers(value) else { return false };
        let Some(Node { op: Op::Add { a, b }, shape, .. }) = self.graph.nodes().get(consumer) else {
            return false;
        };
        self.source(*b) == value
            && self.source(*a) != value
            && shape.width.is_multiple_of(CHUNK)
            && !self.covered[consumer]
    }

    /// Emits stages for the remaining products of `x`. Products whose weights are adjacent share a stage.
    pub(super) fn stack_products(&mut self, x: Value, rows: Rows) {
        let x = self.source(x);
        let mut products: Vec<(Weight, Value)> = Vec::new();
        for &index in self.consumers(x) {
            let Some(node) = self.graph.nodes().get(index) else { continue };
            match node.op {
                Op::Linear { weight, .. }
                    if !self.covered[index]
                        && (self.shape.decodes || node.shape.rows == rows)
                        && self.is_fused_product(node) =>
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
            self.covered[value.index()] = true;
            match runs.last_mut() {
                Some(run) if self.stackable(run[run.len() - 1], (weight, value)) => run.push((weight, value)),
                _ => runs.push(vec![(weight, value)]),
            }
        }
        // The attention kernel reads queries and keys from one buffer, even if their formats differ.
        let all = runs.iter().flatten();
        let run_of = |value: Value| runs.iter().position(|run| run.iter().any(|&(_, other)| other == value));
        let share_buffer = self.patterns.attention.values().any(|attention| {
            let k = attention.kv.and_then(|[k, _]| run_of(k.value));
            run_of(attention.q.value).zip(k).is_some_and(|(q, k)| q != k)
        });
        let width: u32 = all.map(|&(weight, _)| self.graph.weight(weight).rows).sum();
        let first = runs[0][0].1;
        let mut column = 0;
        for outputs in runs {
            let columns = share_buffer.then_some(ColumnRange { first, column, width });
            column += outputs.iter().map(|&(weight, _)| self.graph.weight(weight).rows).sum::<u32>();
            let linear = Linear { input, outputs, routing: None, epilogue: Epilogue::Store, rows, columns };
            self.stages.push(Stage::Linear(linear));
            // Only the first stage stores the sum.
            if let Input::Prologue { keep, .. } = &mut input {
                *keep = None;
            }
        }
        self.forget_sum(x);
    }

    /// True if two products can share a stage: their weights are adjacent, and only attention, which can read a range of
    /// columns, consumes them.
    fn stackable(&self, (weight, value): (Weight, Value), (next, next_value): (Weight, Value)) -> bool {
        let heads = |value: Value| {
            self.patterns.raw_heads.contains(&value)
                && self.consumers(value).iter().all(|&consumer| self.covered.get(consumer) == Some(&true))
        };
        self.manifest.follows(self.graph, weight, next) && heads(value) && heads(next_value)
    }

    /// Emits the stage of one product and its epilogue, which produces `out`.
    pub(super) fn product(&mut self, product: usize, out: Value, epilogue: Epilogue) {
        let node = &self.graph.nodes()[product];
        let (x, weight, routing) = match node.op {
            Op::Linear { x, weight, .. } => (x, weight, None),
            Op::ExpertLinear { x, weight, routing, .. } => (x, weight, Some(self.source(routing))),
            _ => unreachable!("only products have epilogues"),
        };
        if let Some(routing) = routing {
            self.materialise(routing);
        }
        if let Epilogue::GeluOther { other, .. } = epilogue {
            self.materialise(other);
        }
        let x = self.source(x);
        let input = self.input(x);
        let outputs = vec![(weight, out)];
        let (rows, columns) = (node.shape.rows, None);
        self.stages.push(Stage::Linear(Linear { input, outputs, routing, epilogue, rows, columns }));
        self.forget_sum(x);
    }

    /// The input of a product: `x`, or the prologue that computes `x`.
    fn input(&mut self, x: Value) -> Input {
        if let Some(&DeferredNorm { of, norm, factor }) = self.deferred.norms.get(&x) {
            let norm = Some(norm);
            return match self.deferred.sums.get(&of) {
                Some(&sum) => {
                    let keep = (!self.has_one_consumer(of)).then_some(of);
                    Input::Prologue { source: InputSource::Sum(sum), keep, norm, factor }
                }
                None => Input::Prologue { source: InputSource::Value(of), keep: None, norm, factor },
            };
        }
        match self.deferred.sums.get(&x) {
            Some(&sum) if self.fits_prologue(self.graph.value(x)) => {
                let keep = (!self.has_one_consumer(x)).then_some(x);
                Input::Prologue { source: InputSource::Sum(sum), keep, norm: None, factor: 1.0 }
            }
            _ => {
                self.materialise(x);
                Input::Value(x)
            }
        }
    }

    /// Forgets a deferred sum that a prologue has stored or that nothing else reads.
    fn forget_sum(&mut self, x: Value) {
        let of = self.deferred.norms.get(&x).map_or(x, |norm| norm.of);
        if self.deferred.sums.contains_key(&of) && (x == of || !self.has_one_consumer(of)) {
            self.deferred.sums.remove(&of);
        }
    }
}
