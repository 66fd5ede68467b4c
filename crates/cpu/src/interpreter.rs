//! Computes the values of a graph, one operation after another.

use std::ops::Range;

use rullama_gguf::Format;
use rullama_graph::{Ahead, Attended as To, Graph, Mask, Op, RowCounts, Rows, Value, WeightInfo};

use crate::{
    Caches, CpuError, Output, Step,
    activations::QuantRows,
    attend::{Attended, attend, attend_all, rows_worth_sharing},
    caches::Stored,
    experts::{self, combine, route},
    kernels::Kernels,
    memory::Pool,
    parallel::each_row,
    product::{Inputs, Place, StoredRows, multiply, quantises},
    rope::Turns,
    tower,
    weights::Ready,
};

/// One step under way.
pub(crate) struct Run<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) step: &'a Step<'a>,
    kernels: &'a Kernels,
    counts: RowCounts,
    /// Tokens that the conversation had before the step.
    before: usize,
    last_uses: Vec<usize>,
    values: Vec<Vec<f32>>,
    pool: Pool,
    turns: Turns,
    /// The activations that were quantised last, by the number of their value and the width of their rows: queries, keys
    /// and values are products of the same.
    quantised: (Option<(usize, usize)>, QuantRows),
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        graph: &'a Graph,
        kernels: &'a Kernels,
        step: &'a Step<'a>,
        counts: RowCounts,
        before: usize,
        pool: Pool,
    ) -> Self {
        let (last_uses, values) = (graph.last_uses(), vec![Vec::new(); graph.nodes().len()]);
        let (turns, quantised) = (Turns::default(), Default::default());
        Self { graph, step, kernels, counts, before, last_uses, values, pool, turns, quantised }
    }

    /// The graph's outputs, after all operations.
    pub(crate) fn outputs(&mut self) -> Vec<Output> {
        let outputs = self.graph.outputs().iter();
        outputs
            .map(|&(_, value)| Output { values: self.get(value).to_vec(), width: self.width(value) })
            .collect()
    }

    /// All buffers, for the next step.
    pub(crate) fn into_pool(mut self) -> Pool {
        self.values.into_iter().for_each(|buffer| self.pool.give_back(buffer));
        self.pool
    }

    /// About how long an operation takes, in products.
    pub(crate) fn work(&self, index: usize) -> u64 {
        /// Reading and writing a value takes as long as so many products.
        const VALUE: u64 = 32;
        let node = &self.graph.nodes()[index];
        let results = self.len(index) as u64;
        match node.op {
            Op::Linear { weight, .. } | Op::ExpertLinear { weight, .. } => {
                results * u64::from(self.graph.weight(weight).width)
            }
            Op::Attend { .. } => {
                let rows = self.counts.of(node.shape.rows).max(self.before + self.step.rows.len());
                results * 2 * rows as u64
            }
            Op::Convolve { shape, .. } => results * 9 * u64::from(shape.channels),
            Op::AttendRelative { shape, .. } => {
                let rows = self.counts.of(node.shape.rows) as u64;
                results * 3 * shape.mask.window.map_or(rows, |window| rows.min(window.into()))
            }
            _ => results * VALUE,
        }
    }

    /// Computes one operation.
    pub(crate) fn compute(
        &mut self,
        index: usize,
        ready: &Ready,
        caches: &mut Caches,
    ) -> Result<(), CpuError> {
        let node = &self.graph.nodes()[index];
        if is_heavy(&node.op) {
            let mut out = self.begin(index, ready);
            self.compute_rows(index, ready, caches, 0..self.counts.of(node.shape.rows), &mut out);
            return self.end(index, ready, out);
        }
        if let Op::ExpertLinear { .. } = node.op {
            return self.product(index, ready);
        }
        let vector = vector(ready);
        if let Op::Rope { rope, .. } = node.op {
            let positions: Vec<usize> = self.positions(node.shape.rows).collect();
            self.turns.prepare(rope, node.shape.rows, &positions, vector);
        }
        let mut out = self.pool.take(self.len(index));
        let (kernels, width) = (self.kernels, node.shape.width as usize);
        match node.op {
            Op::Linear { .. }
            | Op::ExpertLinear { .. }
            | Op::Embed { .. }
            | Op::Attend { .. }
            | Op::AttendRelative { .. }
            | Op::Convolve { .. } => {
                unreachable!("computed elsewhere")
            }
            Op::Input { input } => {
                let name = &self.graph.inputs()[input.index()].name;
                let given = self.step.inputs.iter().find(|(given, _)| given == name);
                out.copy_from_slice(given.expect("checked before the step began").1);
            }
            Op::RmsNorm { x, group, eps, .. } => {
                let (x, group) = (self.get(x), group as usize);
                each_row(&mut out, width, |row, out| {
                    let groups = x[row * width..].chunks(group).zip(out.chunks_mut(group));
                    groups.for_each(|(x, out)| (kernels.rms_norm)(x, vector, eps, out));
                });
            }
            Op::Rope { x, rope } => self.turns.rope(self.get(x), width, rope, node.shape.rows, &mut out),
            Op::StoreKv { k, v, cache } => {
                let tensor = || format!("cache {}", cache.index());
                let stored = caches.store(cache, self.get(k), self.get(v));
                stored.map_err(|source| CpuError::Format { tensor: tensor(), source })?;
            }
            Op::Add { a, b } => pairwise(self.get(a), self.get(b), &mut out, |a, b| a + b),
            Op::Mul { a, b } => pairwise(self.get(a), self.get(b), &mut out, |a, b| a * b),
            Op::Scale { x, by } => each(self.get(x), &mut out, |x| x * by),
            Op::ScaleBy { x, .. } => tower::by_column(self.get(x), given(vector), &mut out, |x, by| x * by),
            Op::Bias { x, .. } => tower::by_column(self.get(x), given(vector), &mut out, |x, by| x + by),
            Op::Clamp { x, low, high } => {
                tower::each_finite(self.get(x), &mut out, |x| x.max(low).min(high));
            }
            Op::Activate { x, with } => tower::activate(kernels, self.get(x), with, &mut out),
            Op::ConvolveColumns { x, rows, .. } => {
                tower::convolve_columns(self.get(x), width, given(vector), rows as usize, &mut out);
            }
            Op::LayerNorm { x, eps, .. } => {
                tower::layer_norm(kernels, self.get(x), width, given(vector), eps, &mut out);
            }
            Op::Rotate { x, turns, part } => {
                let head = self.width(turns);
                tower::rotate(self.get(x), width, self.get(turns), head, part as usize, &mut out);
            }
            Op::GeluMul { gate, up } => {
                let (gate, up) = (self.get(gate), self.get(up));
                each_row(&mut out, width, |row, out| {
                    (kernels.gelu_mul)(&gate[row * width..][..width], &up[row * width..][..width], out);
                });
            }
            Op::Columns { x, first, .. } => {
                let (x, all, first) = (self.get(x), self.width(x), first as usize);
                for (x, out) in x.chunks(all).zip(out.chunks_mut(width)) {
                    out.copy_from_slice(&x[first..first + width]);
                }
            }
            Op::LastRow { x } => {
                let x = self.get(x);
                out.copy_from_slice(&x[x.len() - width..]);
            }
            Op::MeanRows { x, group } => mean_rows(self.get(x), width, group as usize, &mut out),
            Op::SoftCap { x, cap } => {
                let x = self.get(x);
                each_row(&mut out, TOGETHER, |part, out| {
                    (kernels.soft_cap)(&x[part * TOGETHER..][..out.len()], cap, out);
                });
            }
            Op::Route { logits, used } => {
                route(self.get(logits), self.width(logits), used as usize, &mut out);
            }
            Op::Combine { x, routing, .. } => {
                let used = self.width(routing) / 2;
                combine(self.get(x), self.get(routing), used, width, vector, &mut out);
            }
        }
        self.finish(index, out)
    }

    /// How many rows of a heavy operation to compute before the caller gets a chance to drop the step: those of about `work`
    /// numbers. None if all rows are fewer, or if the operation is computed at once.
    pub(crate) fn rows_at_once(&self, index: usize, work: u64) -> Option<usize> {
        /// A tile of weights is unpacked for so many rows at least.
        const WORTH_A_TILE: usize = 128;
        let node = &self.graph.nodes()[index];
        let all = self.counts.of(node.shape.rows);
        if !is_heavy(&node.op) || all == 0 {
            return None;
        }
        let least = match node.op {
            Op::Linear { .. } => WORTH_A_TILE,
            Op::Attend { shape, .. } => rows_worth_sharing(self.kernels, shape.heads as usize),
            _ => 1,
        };
        let rows = (work / (self.work(index) / all as u64).max(1)) as usize;
        Some(rows.max(1).next_multiple_of(least)).filter(|&rows| rows < all)
    }

    /// Rows of an operation's result.
    pub(crate) fn rows(&self, index: usize) -> usize {
        self.counts.of(self.graph.nodes()[index].shape.rows)
    }

    /// Prepares a heavy operation: returns a buffer for its result.
    pub(crate) fn begin(&mut self, index: usize, ready: &Ready) -> Vec<f32> {
        match (&self.graph.nodes()[index].op, ready) {
            (&Op::Linear { x, .. }, Ready::Matrices(matrices)) => {
                self.begin_product(index, x, matrices.format())
            }
            _ => self.buffer(index),
        }
    }

    /// Computes some rows of a heavy operation.
    pub(crate) fn compute_rows(
        &self,
        index: usize,
        ready: &Ready,
        caches: &Caches,
        rows: Range<usize>,
        out: &mut [f32],
    ) {
        let (kernels, node) = (self.kernels, &self.graph.nodes()[index]);
        let width = node.shape.width as usize;
        let part = rows.start * width..rows.end * width;
        match node.op {
            Op::Linear { x, weight, .. } => {
                let Ready::Matrices(matrices) = ready else { unreachable!("products have matrices") };
                let places: Vec<Place> = rows.map(|row| Place { input: row, output: row * width }).collect();
                self.multiply(x, matrices.rows(0), self.graph.weight(weight), &places, 0, out);
            }
            Op::Attend { q, to: attended, shape } => {
                let (q, out) = (&self.get(q)[part.clone()], &mut out[part]);
                let to = match attended {
                    To::Rows { k, v } if self.sees_all(node.shape.rows, shape.mask) => {
                        return attend_all(kernels, q, [self.get(k), self.get(v)], shape, out);
                    }
                    To::Cache { cache, .. } => {
                        let (keys, values, first) = caches.layer(cache);
                        Attended { keys, values, first }
                    }
                    To::Rows { k, v } => Attended {
                        keys: Stored::F32(self.get(k)),
                        values: Stored::F32(self.get(v)),
                        first: 0,
                    },
                };
                let seen = self.seen(node.shape.rows, shape.mask, attended);
                attend(kernels, q, to, &seen[rows], shape, out);
            }
            Op::AttendRelative { q, k, v, distances, shape, cap } => {
                let values = [q, k, v, distances].map(|value| self.get(value));
                tower::attend_relative(kernels, values, shape, cap, rows.start, &mut out[part]);
            }
            Op::Convolve { x, shape, .. } => {
                let weight = given(vector(ready));
                tower::convolve(kernels, self.get(x), weight, shape, rows.start, &mut out[part]);
            }
            _ => unreachable!("computed at once"),
        }
    }

    /// Keeps the result of a heavy operation.
    pub(crate) fn end(&mut self, index: usize, ready: &Ready, out: Vec<f32>) -> Result<(), CpuError> {
        match ready {
            Ready::Matrices(matrices) => self.finish_product(index, out, matrices.factor),
            _ => self.finish(index, out),
        }
    }

    fn product(&mut self, index: usize, ready: &Ready) -> Result<(), CpuError> {
        let op = &self.graph.nodes()[index].op;
        let (Op::Linear { x, weight, .. } | Op::ExpertLinear { x, weight, .. }) = *op else {
            unreachable!("only products have matrices");
        };
        let Ready::Matrices(matrices) = ready else { unreachable!("products have matrices") };
        let info = self.graph.weight(weight);
        let mut out = self.begin_product(index, x, matrices.format());
        for (matrix, places) in self.places(op, info) {
            self.multiply(x, matrices.rows(matrix), info, &places, 0, &mut out);
        }
        self.finish_product(index, out, matrices.factor)
    }

    /// A buffer for the results of a product, whose activations are quantised if weights of `format` need that.
    pub(crate) fn begin_product(&mut self, index: usize, x: Value, format: Format) -> Vec<f32> {
        let node = &self.graph.nodes()[index];
        let width = node.op.weight().map_or(0, |weight| self.graph.weight(weight).width as usize);
        if quantises(format, width) && self.quantised.0 != Some((x.index(), width)) {
            self.quantised.1.quantise(self.kernels, &self.values[x.index()], width);
            self.quantised.0 = Some((x.index(), width));
        }
        self.buffer(index)
    }

    /// A buffer for the result of an operation, of whatever was in it.
    pub(crate) fn buffer(&mut self, index: usize) -> Vec<f32> {
        self.pool.take(self.len(index))
    }

    /// The matrices that a product uses, and where the rows that each is multiplied with are.
    pub(crate) fn places(&self, op: &Op, info: &WeightInfo) -> Vec<(usize, Vec<Place>)> {
        let (width, rows) = (info.width as usize, info.rows as usize);
        match *op {
            Op::ExpertLinear { x, routing, .. } => {
                let used = self.width(routing) / 2;
                let own_inputs = self.width(x) == used * width && used > 1;
                experts::places(self.get(routing), used, rows, own_inputs).into_iter().collect()
            }
            Op::Linear { x, .. } => {
                let count = self.get(x).len() / width;
                vec![(0, (0..count).map(|row| Place { input: row, output: row * rows }).collect())]
            }
            _ => Vec::new(),
        }
    }

    /// Multiplies some rows of a weight, from row `from` on, with the rows of `x` at `places`.
    pub(crate) fn multiply(
        &self,
        x: Value,
        rows: StoredRows<'_>,
        info: &WeightInfo,
        places: &[Place],
        from: usize,
        out: &mut [f32],
    ) {
        let width = info.width as usize;
        let inputs = if quantises(rows.format, width) {
            Inputs::Quantised(&self.quantised.1)
        } else {
            Inputs::Floats(self.get(x))
        };
        let moved: Vec<Place>;
        let places = if from == 0 {
            places
        } else {
            moved = places.iter().map(|place| Place { output: place.output + from, ..*place }).collect();
            &moved
        };
        multiply(self.kernels, rows, width, inputs, places, out);
    }

    /// Applies the factor of a weight to its products.
    pub(crate) fn finish_product(
        &mut self,
        index: usize,
        mut out: Vec<f32>,
        factor: f32,
    ) -> Result<(), CpuError> {
        if factor != 1.0 {
            out.iter_mut().for_each(|value| *value *= factor);
        }
        self.finish(index, out)
    }

    /// Keeps the result of an operation, if it is finite, and forgets what nothing reads any more.
    pub(crate) fn finish(&mut self, index: usize, out: Vec<f32>) -> Result<(), CpuError> {
        let node = &self.graph.nodes()[index];
        if let Some(name) = &node.name
            && let Some(at) = (self.kernels.not_finite)(&out)
        {
            let row = at / node.shape.width as usize;
            let tokens = self.positions(node.shape.rows).nth(row).unwrap_or(0) + 1;
            return Err(CpuError::NotFinite { value: name.clone(), tokens });
        }
        self.values[index] = out;
        for input in node.op.inputs() {
            if self.last_uses[input.index()] == index {
                let buffer = std::mem::take(&mut self.values[input.index()]);
                self.pool.give_back(buffer);
            }
        }
        Ok(())
    }

    fn get(&self, value: Value) -> &[f32] {
        &self.values[value.index()]
    }

    fn width(&self, value: Value) -> usize {
        self.graph.value(value).shape.width as usize
    }

    /// Values of an operation's result.
    fn len(&self, index: usize) -> usize {
        let shape = self.graph.nodes()[index].shape;
        self.counts.of(shape.rows) * shape.width as usize
    }

    /// The positions of rows. Rows of a domain are a sequence of their own.
    fn positions(&self, rows: Rows) -> Range<usize> {
        let end = self.before + self.step.rows.len();
        match rows {
            Rows::Step => self.before..end,
            Rows::Last => end - self.counts.of(rows)..end,
            Rows::Of(_) => 0..self.counts.of(rows),
        }
    }

    /// Whether every row of a domain sees all others.
    fn sees_all(&self, rows: Rows, mask: Mask) -> bool {
        matches!(rows, Rows::Of(_)) && mask.ahead == Ahead::Step && mask.window.is_none()
    }

    /// The positions that each query sees.
    fn seen(&self, rows: Rows, mask: Mask, to: To) -> Vec<Range<usize>> {
        let own = matches!(rows, Rows::Of(_));
        // Attention over rows of the step looks at these alone, and counts them from zero.
        let before = if own || matches!(to, To::Rows { .. }) { 0 } else { self.before };
        let (start, count) =
            if own { (0, self.counts.of(rows)) } else { (self.before, self.step.rows.len()) };
        let without_spans = Step::default();
        let step = if own { &without_spans } else { self.step };
        self.positions(rows).map(|position| step.seen(mask, position - start, before, count)).collect()
    }
}

/// Whether an operation takes long enough with many rows that these are computed in several goes.
fn is_heavy(op: &Op) -> bool {
    matches!(op, Op::Linear { .. } | Op::Attend { .. } | Op::AttendRelative { .. } | Op::Convolve { .. })
}

/// The vector of an operation, if it has one.
fn vector(ready: &Ready) -> Option<&[f32]> {
    match ready {
        Ready::Vector(vector) => Some(&vector[..]),
        _ => None,
    }
}

/// The vector of an operation that has one.
fn given(vector: Option<&[f32]>) -> &[f32] {
    vector.expect("the operation has a weight")
}

/// Values that are computed together, whatever rows they belong to.
const TOGETHER: usize = 1 << 12;

fn pairwise(a: &[f32], b: &[f32], out: &mut [f32], with: impl Fn(f32, f32) -> f32 + Sync + Send) {
    each_row(out, TOGETHER, |part, out| {
        let from = part * TOGETHER;
        for ((out, a), b) in out.iter_mut().zip(&a[from..]).zip(&b[from..]) {
            *out = with(*a, *b);
        }
    });
}

fn each(x: &[f32], out: &mut [f32], with: impl Fn(f32) -> f32 + Sync + Send) {
    each_row(out, TOGETHER, |part, out| {
        out.iter_mut().zip(&x[part * TOGETHER..]).for_each(|(out, x)| *out = with(*x));
    });
}

/// The mean of each `group` neighbouring rows; of fewer, at the end.
fn mean_rows(x: &[f32], width: usize, group: usize, out: &mut [f32]) {
    out.fill(0.0);
    for (rows, out) in x.chunks(group * width).zip(out.chunks_mut(width)) {
        let count = (rows.len() / width) as f32;
        for row in rows.chunks(width) {
            out.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        out.iter_mut().for_each(|sum| *sum /= count);
    }
}
