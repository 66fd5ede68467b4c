//! Walks a graph and computes each of its values.

use std::{future::poll_fn, task::Poll};

use rullama_graph::{Attended, Graph, Op, RowCounts, Rows, Value, Weight};

use crate::{
    Caches, Matrix, ReferenceError, Step, Weights,
    activate::activate,
    attend::{Seen, attend},
    attend_relative::attend_relative,
    combine::combine,
    convolve::{convolve, convolve_columns},
    elementwise::{add, bias, clamp, columns, mean_rows, mul, rows_at, scale, scale_by, soft_cap},
    embed::embed,
    expert_linear::expert_linear,
    gelu_mul::gelu_mul,
    layer_norm::layer_norm,
    linear::linear,
    rms_norm::rms_norm,
    rope::rope,
    rotate::rotate,
    route::route,
    step::{Entry, RowTable, seen},
};

/// Looks on while a graph is computed.
pub trait Watch {
    /// A value that has a name.
    fn value(&mut self, _name: &str, _value: &Matrix) {}

    /// So many of all operations are done.
    fn progress(&mut self, _done: usize, _all: usize) {}
}

/// Nobody looks on.
impl Watch for () {}

/// Computes a step of one conversation: the graph's first output for the rows of `step`, which follow those in `caches`.
///
/// If it fails or is dropped halfway, the caches are as they were before.
pub async fn run(
    graph: &Graph,
    weights: &Weights,
    caches: &mut Caches,
    step: &Step<'_>,
    watch: &mut dyn Watch,
) -> Result<Matrix, ReferenceError> {
    let mut outputs = run_together(graph, weights, &mut [caches], step, watch).await?;
    Ok(outputs.swap_remove(0))
}

/// Computes a step of several conversations, each with caches of its own, or of none: all outputs of the graph.
///
/// If it fails or is dropped halfway, the caches are as they were before.
pub async fn run_together(
    graph: &Graph,
    weights: &Weights,
    caches: &mut [&mut Caches],
    step: &Step<'_>,
    watch: &mut dyn Watch,
) -> Result<Vec<Matrix>, ReferenceError> {
    let counts = row_counts(graph, caches.len(), step)?;
    let before: Vec<usize> = caches.iter().map(|caches| caches.len()).collect();
    check_memory(graph, caches, step, &counts)?;
    // Also clears away what a step left behind that was dropped halfway.
    let set_back = |caches: &mut [&mut Caches]| {
        caches.iter_mut().zip(&before).for_each(|(caches, &before)| caches.truncate(before));
    };
    set_back(caches);
    let run = Run { graph, weights, step, table: RowTable::new(step, &before), counts, before: &before };
    let result = run.walk(caches, watch).await;
    match result {
        Ok(_) => caches.iter_mut().zip(&step.sequences).for_each(|(caches, sequence)| {
            caches.advance(sequence.rows.len());
        }),
        Err(_) => set_back(caches),
    }
    result
}

/// Counts the rows of a step, and refuses one whose rows or inputs are not those of the graph.
fn row_counts(graph: &Graph, conversations: usize, step: &Step<'_>) -> Result<RowCounts, ReferenceError> {
    let reads_tokens = graph.nodes().iter().any(|node| node.shape.rows == Rows::Step);
    let empty = step.sequences.is_empty() || step.sequences.iter().any(|sequence| sequence.rows.is_empty());
    if reads_tokens && (empty || step.sequences.len() != conversations) {
        return Err(ReferenceError::EmptyStep);
    }
    for info in graph.inputs() {
        let given = given(step, &info.name)?;
        if given.width() != info.shape.width as usize || given.rows() == 0 {
            return Err(wrong_input(&info.name, given));
        }
    }
    let first = |domain| {
        let of = |info: &&rullama_graph::InputInfo| info.shape.rows == Rows::Of(domain);
        let input = graph.inputs().iter().find(of);
        input.and_then(|info| given(step, &info.name).ok()).map_or(0, Matrix::rows)
    };
    let counts = graph.row_counts(step.len(), step.sequences.len(), first);
    for info in graph.inputs() {
        let given = given(step, &info.name)?;
        if given.rows() != counts.of(info.shape.rows) {
            return Err(wrong_input(&info.name, given));
        }
    }
    Ok(counts)
}

fn given<'a>(step: &Step<'a>, name: &str) -> Result<&'a Matrix, ReferenceError> {
    let found = step.inputs.iter().find(|(given, _)| *given == name);
    found.map(|(_, matrix)| *matrix).ok_or_else(|| ReferenceError::MissingInput { input: name.to_owned() })
}

fn wrong_input(name: &str, given: &Matrix) -> ReferenceError {
    ReferenceError::WrongInput { input: name.to_owned(), rows: given.rows(), width: given.width() }
}

/// One step under way.
struct Run<'a> {
    graph: &'a Graph,
    weights: &'a Weights,
    step: &'a Step<'a>,
    table: RowTable,
    counts: RowCounts,
    /// Tokens that each conversation had before the step.
    before: &'a [usize],
}

impl Run<'_> {
    async fn walk(
        &self,
        caches: &mut [&mut Caches],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Matrix>, ReferenceError> {
        let &Self { graph, weights, step, .. } = self;
        let last_uses = graph.last_uses();
        let all = graph.nodes().len();
        let mut values: Vec<Matrix> = vec![Matrix::default(); all];
        for (index, node) in graph.nodes().iter().enumerate() {
            let get = |value: Value| &values[value.index()];
            let vector = |weight| weights.vector(graph.weight(weight));
            let result = match node.op {
                Op::Input { input } => given(step, &graph.inputs()[input.index()].name)?.clone(),
                Op::Embed { table, scale, soft } => {
                    embed(step, weights, graph.weight(table), scale, soft).await?
                }
                Op::Linear { x, weight, .. } => {
                    let y = linear(get(x), weights, graph.weight(weight), 0).await?;
                    scaled(y, factor(graph, weights, weight).await?)
                }
                Op::RmsNorm { x, weight: None, group, eps } => rms_norm(get(x), None, group as usize, eps),
                Op::RmsNorm { x, weight: Some(weight), group, eps } => {
                    rms_norm(get(x), Some(&vector(weight).await?), group as usize, eps)
                }
                Op::LayerNorm { x, weight, eps, .. } => layer_norm(get(x), &vector(weight).await?, eps),
                Op::Rotate { x, turns, part } => rotate(get(x), get(turns), part as usize),
                Op::Rope { x, rope: by } => {
                    let factors = match by.factors {
                        Some(factors) => Some(vector(factors).await?),
                        None => None,
                    };
                    let positions: Vec<usize> =
                        self.entries(node.shape.rows).iter().map(|entry| entry.position).collect();
                    rope(get(x), &positions, by, factors.as_deref())
                }
                Op::StoreKv { k, v, cache } => {
                    let tensor = || format!("cache {}", cache.index());
                    for (sequence, caches) in caches.iter_mut().enumerate() {
                        let rows = self.rows_of(sequence);
                        let (k, v) = (get(k), get(v));
                        let part = |x: &Matrix| rows_at(x, &rows.clone().collect::<Vec<_>>());
                        caches
                            .store(cache, &part(k), &part(v))
                            .map_err(|source| ReferenceError::Format { tensor: tensor(), source })?;
                    }
                    Matrix::default()
                }
                Op::Attend { q, to, shape } => {
                    let seen = self.seen(&values, caches, to, node.shape.rows, shape.mask);
                    attend(get(q), &seen, shape)
                }
                Op::AttendRelative { q, k, v, distances, shape, cap } => {
                    attend_relative([q, k, v, distances].map(get), shape, cap)
                }
                Op::Add { a, b } => add(get(a), get(b)),
                Op::Mul { a, b } => mul(get(a), get(b)),
                Op::Scale { x, by } => scale(get(x), by),
                Op::ScaleBy { x, weight } => scale_by(get(x), &vector(weight).await?),
                Op::Bias { x, weight } => bias(get(x), &vector(weight).await?),
                Op::Clamp { x, low, high } => clamp(get(x), low, high),
                Op::Activate { x, with } => activate(get(x), with),
                Op::Convolve { x, weight, shape } => convolve(get(x), &vector(weight).await?, shape),
                Op::ConvolveColumns { x, weight, rows } => {
                    convolve_columns(get(x), &vector(weight).await?, rows as usize)
                }
                Op::GeluMul { gate, up } => gelu_mul(get(gate), get(up)),
                Op::Columns { x, first, width } => columns(get(x), first as usize, width as usize),
                Op::LastRow { x } => rows_at(get(x), &self.table.last_rows()),
                Op::MeanRows { x, group } => mean_rows(get(x), group as usize),
                Op::SoftCap { x, cap } => soft_cap(get(x), cap),
                Op::Route { logits, used } => route(get(logits), used as usize),
                Op::ExpertLinear { x, routing, weight, .. } => {
                    let y = expert_linear(get(x), get(routing), weights, graph.weight(weight)).await?;
                    scaled(y, factor(graph, weights, weight).await?)
                }
                Op::Combine { x, routing, scale: None } => combine(get(x), get(routing), None),
                Op::Combine { x, routing, scale: Some(scale) } => {
                    combine(get(x), get(routing), Some(&vector(scale).await?))
                }
            };
            if let Some(name) = &node.name {
                self.check_finite(name, &result, node.shape.rows)?;
                watch.value(name, &result);
            }
            values[index] = result;
            for input in node.op.inputs() {
                if last_uses[input.index()] == index {
                    values[input.index()] = Matrix::default();
                }
            }
            watch.progress(index + 1, all);
            pause().await;
        }
        Ok(graph.outputs().iter().map(|(_, output)| values[output.index()].clone()).collect())
    }

    fn entries(&self, rows: Rows) -> Vec<Entry> {
        self.table.entries(rows, self.counts.of(rows))
    }

    /// The rows of a conversation among those of the step.
    fn rows_of(&self, sequence: usize) -> std::ops::Range<usize> {
        let first = self.table.first_row(sequence);
        first..first + self.step.sequences[sequence].rows.len()
    }

    /// What each query attends to.
    fn seen<'v>(
        &self,
        values: &'v [Matrix],
        caches: &'v [&mut Caches],
        to: Attended,
        rows: Rows,
        mask: rullama_graph::Mask,
    ) -> Vec<Seen<'v>> {
        let see = |entry: Entry| {
            let sequence = self.step.sequences.get(entry.sequence).filter(|_| !matches!(rows, Rows::Of(_)));
            let count = sequence.map_or(self.counts.of(rows), |sequence| sequence.rows.len());
            match to {
                Attended::Cache { cache, .. } => {
                    let (keys, cached) = caches[entry.sequence].layer(cache);
                    let positions = seen(mask, entry, self.before[entry.sequence], sequence, count);
                    Seen { keys, values: cached, positions }
                }
                Attended::Rows { k, v } => {
                    let (k, v) = (&values[k.index()], &values[v.index()]);
                    let first = sequence.map_or(0, |_| self.table.first_row(entry.sequence)) * k.width();
                    let positions = seen(mask, entry, 0, sequence, count);
                    Seen { keys: &k.values()[first..], values: &v.values()[first..], positions }
                }
            }
        };
        self.entries(rows).into_iter().map(see).collect()
    }

    /// Refuses a value with an infinity or NaN.
    fn check_finite(&self, name: &str, value: &Matrix, rows: Rows) -> Result<(), ReferenceError> {
        match value.values().iter().position(|number| !number.is_finite()) {
            Some(at) => {
                let tokens = self.entries(rows)[at / value.width()].position + 1;
                Err(ReferenceError::NotFinite { value: name.to_owned(), tokens })
            }
            None => Ok(()),
        }
    }
}

/// Refuses a step that there is no memory for, before it allocates anything. The widths of a model are those of its file,
/// which may be made to ask for more than any machine has.
fn check_memory(
    graph: &Graph,
    caches: &[&mut Caches],
    step: &Step<'_>,
    counts: &RowCounts,
) -> Result<(), ReferenceError> {
    let growth =
        |(caches, sequence): (&&mut Caches, &crate::Sequence<'_>)| caches.growth(sequence.rows.len());
    let growth: u64 = caches.iter().zip(&step.sequences).map(growth).fold(0, u64::saturating_add);
    let bytes = growth.saturating_add(peak(graph, counts));
    // A quarter more: weights are decoded besides, and many small blocks need more room than one large block.
    let room = bytes.saturating_add(bytes / 4);
    let all = usize::try_from(room).ok().filter(|&room| Vec::<u8>::new().try_reserve_exact(room).is_ok());
    let cached = caches.iter().map(|caches| caches.len()).sum();
    all.map(|_| ()).ok_or(ReferenceError::OutOfMemory { rows: step.len(), cached, bytes })
}

/// The most bytes that the values of a step have at once. An operation also needs about as much as its result while it is
/// computed.
fn peak(graph: &Graph, counts: &RowCounts) -> u64 {
    let bytes = |index: usize| {
        let shape = graph.nodes()[index].shape;
        4 * u64::from(shape.width) * counts.of(shape.rows) as u64
    };
    let last_uses = graph.last_uses();
    let (mut live, mut most) = (0, 0);
    for (index, node) in graph.nodes().iter().enumerate() {
        live += bytes(index);
        most = most.max(live + bytes(index));
        let mut inputs: Vec<usize> = node.op.inputs().map(|input| input.index()).collect();
        inputs.sort_unstable();
        inputs.dedup();
        live -= inputs.into_iter().filter(|&input| last_uses[input] == index).map(bytes).sum::<u64>();
    }
    most
}

/// What all values of a weight are multiplied with.
async fn factor(graph: &Graph, weights: &Weights, weight: Weight) -> Result<f32, ReferenceError> {
    match graph.weight(weight).scale {
        Some(scale) => Ok(weights.vector(graph.weight(scale)).await?[0]),
        None => Ok(1.0),
    }
}

fn scaled(x: Matrix, by: f32) -> Matrix {
    if by == 1.0 { x } else { scale(&x, by) }
}

/// Gives way once, so that a step can be dropped between two operations and others are not kept waiting.
async fn pause() {
    let mut paused = false;
    poll_fn(|context| {
        if paused {
            return Poll::Ready(());
        }
        paused = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
