//! Walks a graph and computes each of its values.

use std::{future::poll_fn, task::Poll};

use rullama_graph::{Graph, Op, Weight};

use crate::{
    Caches, Matrix, ReferenceError, Step, Weights,
    attend::attend,
    combine::combine,
    elementwise::{add, columns, last_row, mul, scale, soft_cap},
    embed::embed,
    expert_linear::expert_linear,
    gelu_mul::gelu_mul,
    linear::linear,
    rms_norm::rms_norm,
    rope::rope,
    route::route,
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

/// Computes a step: the graph's output for the rows of `step`, which follow those in `caches`.
///
/// If it fails or is dropped halfway, the caches are as they were before.
pub async fn run(
    graph: &Graph,
    weights: &Weights,
    caches: &mut Caches,
    step: &Step<'_>,
    watch: &mut dyn Watch,
) -> Result<Matrix, ReferenceError> {
    let before = caches.len();
    check_memory(graph, caches, step.rows.len())?;
    // Also clears away what a step left behind that was dropped halfway.
    caches.truncate(before);
    let result = walk(graph, weights, caches, step, watch).await;
    match result {
        Ok(_) => caches.advance(step.rows.len()),
        Err(_) => caches.truncate(before),
    }
    result
}

async fn walk(
    graph: &Graph,
    weights: &Weights,
    caches: &mut Caches,
    step: &Step<'_>,
    watch: &mut dyn Watch,
) -> Result<Matrix, ReferenceError> {
    if step.rows.is_empty() {
        return Err(ReferenceError::EmptyStep);
    }
    let last_uses = graph.last_uses();
    let all = graph.nodes().len();
    let mut values: Vec<Matrix> = vec![Matrix::default(); all];
    for (index, node) in graph.nodes().iter().enumerate() {
        let get = |value: rullama_graph::Value| &values[value.index()];
        // The position of a value's first row: its rows are the step's last ones.
        let position = |value: &Matrix| caches.len() + step.rows.len() - value.rows();
        let vector = |weight| weights.vector(graph.weight(weight));
        let result = match node.op {
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
            Op::Rope { x, rope: by } => {
                let factors = match by.factors {
                    Some(factors) => Some(vector(factors).await?),
                    None => None,
                };
                rope(get(x), position(get(x)), by, factors.as_deref())
            }
            Op::StoreKv { k, v, cache } => {
                let (k, v) = (&values[k.index()], &values[v.index()]);
                let tensor = || format!("cache {}", cache.index());
                caches
                    .store(cache, k, v)
                    .map_err(|source| ReferenceError::Format { tensor: tensor(), source })?;
                Matrix::default()
            }
            Op::Attend { q, cache, shape } => {
                let (keys, cached) = caches.layer(cache);
                attend(get(q), keys, cached, shape, caches.len(), step)
            }
            Op::Add { a, b } => add(get(a), get(b)),
            Op::Mul { a, b } => mul(get(a), get(b)),
            Op::Scale { x, by } => scale(get(x), by),
            Op::ScaleBy { x, weight } => scale(get(x), vector(weight).await?[0]),
            Op::GeluMul { gate, up } => gelu_mul(get(gate), get(up)),
            Op::Columns { x, first, width } => columns(get(x), first as usize, width as usize),
            Op::LastRow { x } => last_row(get(x)),
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
            check_finite(name, &result, caches.len() + step.rows.len() - result.rows())?;
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
    Ok(std::mem::take(&mut values[graph.output().index()]))
}

/// Refuses a step that there is no memory for, before it allocates anything. The widths of a model are those of its file,
/// which may be made to ask for more than any machine has.
fn check_memory(graph: &Graph, caches: &Caches, rows: usize) -> Result<(), ReferenceError> {
    let bytes = caches.growth(rows).saturating_add(peak(graph, rows));
    // A quarter more: weights are decoded besides, and many small blocks need more room than one large block.
    let room = bytes.saturating_add(bytes / 4);
    let all = usize::try_from(room).ok().filter(|&room| Vec::<u8>::new().try_reserve_exact(room).is_ok());
    all.map(|_| ()).ok_or(ReferenceError::OutOfMemory { rows, cached: caches.len(), bytes })
}

/// The most bytes that the values of a step have at once. An operation also needs about as much as its result while it is
/// computed.
fn peak(graph: &Graph, rows: usize) -> u64 {
    let bytes = |index: usize| {
        let shape = graph.nodes()[index].shape;
        4 * u64::from(shape.width) * shape.rows.count(rows) as u64
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

/// Refuses a value with an infinity or NaN. `position` is that of its first row.
fn check_finite(name: &str, value: &Matrix, position: usize) -> Result<(), ReferenceError> {
    match value.values().iter().position(|number| !number.is_finite()) {
        Some(at) => {
            let tokens = position + at / value.width() + 1;
            Err(ReferenceError::NotFinite { value: name.to_owned(), tokens })
        }
        None => Ok(()),
    }
}
