//! Runs graphs: reads what is needed, and computes as many operations at a time as need no waiting.

use std::{cell::RefCell, future::poll_fn, rc::Rc, task::Poll};

use rullama_gguf::Model;
use rullama_graph::{Graph, Op, RowCounts, Rows, SoftRows};

use crate::{
    Caches, CpuError, Row, Step,
    interpreter::Run,
    kernels::Kernels,
    memory::{self, Pool},
    parallel,
    weights::Weights,
};

/// Products, and other work that takes as long, before the caller gets a chance to drop the step: some milliseconds.
const AT_ONCE: u64 = 1 << 28;

/// A model on the CPU.
pub struct Executor {
    weights: Weights,
    kernels: &'static Kernels,
    work_at_once: u64,
    pool: RefCell<Pool>,
}

/// What a graph computed: rows of `width` values.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// The values, row by row.
    pub values: Vec<f32>,
    /// Values of a row.
    pub width: usize,
}

impl Output {
    /// One row.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.width..][..self.width]
    }
}

impl Executor {
    /// Runs `model` with the fastest instructions of this machine, and with at most `memory` bytes of weights held. Weights
    /// are read when they are first needed; those that do not fit are read again for each step.
    pub fn new(model: Rc<Model>, memory: u64) -> Self {
        parallel::start();
        let kernels = Kernels::available()[0];
        let weights = Weights::new(model, memory);
        Self { weights, kernels, work_at_once: AT_ONCE, pool: RefCell::default() }
    }

    /// Uses other instructions than the fastest: one of [`instructions`](Self::instructions).
    ///
    /// # Panics
    ///
    /// If this machine does not have them.
    #[must_use]
    pub fn with_instructions(mut self, name: &str) -> Self {
        let found = Kernels::available().into_iter().find(|kernels| kernels.name == name);
        self.kernels =
            found.unwrap_or_else(|| panic!("this machine does not have the instructions `{name}`"));
        self
    }

    /// Pauses after about so many products, instead of after some milliseconds. Results stay the same.
    #[must_use]
    pub fn with_pauses_after(mut self, products: u64) -> Self {
        self.work_at_once = products;
        self
    }

    /// The sets of instructions that this machine has, the fastest first. The last is `portable`.
    pub fn instructions() -> Vec<&'static str> {
        Kernels::available().into_iter().map(|kernels| kernels.name).collect()
    }

    /// The model it runs.
    pub fn model(&self) -> &Model {
        self.weights.model()
    }

    /// Computes a step: all outputs of the graph for the rows of `step`, which follow those in `caches`. Calls `progress`
    /// with the number of operations done and of all.
    ///
    /// If it fails or is dropped halfway, the caches are as they were before.
    pub async fn run(
        &self,
        graph: &Graph,
        caches: &mut Caches,
        step: &Step<'_>,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Vec<Output>, CpuError> {
        let counts = row_counts(graph, step)?;
        let before = caches.len();
        memory::check(graph, caches, step.rows.len(), &counts)?;
        // Clears away what a step left behind that was dropped halfway.
        caches.truncate(before);
        let pool = self.pool.take();
        let mut run = Run::new(graph, self.kernels, step, counts, before, pool);
        let result = self.walk(&mut run, caches, progress).await;
        match result {
            Ok(()) => caches.advance(step.rows.len()),
            Err(_) => caches.truncate(before),
        }
        let outputs = result.map(|()| run.outputs());
        self.pool.replace(run.into_pool());
        outputs
    }

    async fn walk(
        &self,
        run: &mut Run<'_>,
        caches: &mut Caches,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<(), CpuError> {
        let graph = run.graph;
        let all = graph.nodes().len();
        let mut at = 0;
        while at < all {
            let op = &graph.nodes()[at].op;
            let first = match op {
                Op::Embed { .. } => None,
                op => self.weights.read(graph, op).await?,
            };
            match (first, op) {
                (Some(ready), _) if let Some(rows) = run.rows_at_once(at, self.work_at_once) => {
                    let (mut out, count) = (run.begin(at, &ready), run.rows(at));
                    for from in (0..count).step_by(rows) {
                        run.compute_rows(at, &ready, caches, from..count.min(from + rows), &mut out);
                        progress(at, all);
                        pause().await;
                    }
                    run.end(at, &ready, out)?;
                    at += 1;
                }
                (Some(first), _) => {
                    let mut ready = vec![first];
                    let mut work = run.work(at);
                    while work < self.work_at_once
                        && let Some(node) = graph.nodes().get(at + ready.len())
                        && !matches!(node.op, Op::Embed { .. })
                        && run.rows_at_once(at + ready.len(), self.work_at_once).is_none()
                        && let Some(next) = self.weights.ready(graph, &node.op)
                    {
                        work += run.work(at + ready.len());
                        ready.push(next);
                    }
                    let count = ready.len();
                    (at..).zip(&ready).try_for_each(|(index, ready)| run.compute(index, ready, caches))?;
                    at += count;
                }
                (None, &Op::Embed { table, scale, soft }) => {
                    let mut values = run.buffer(at);
                    self.embed(run.step, graph.weight(table), scale, soft, &mut values).await?;
                    run.finish(at, values)?;
                    at += 1;
                }
                (None, _) => {
                    self.streamed(run, at).await?;
                    at += 1;
                }
            }
            progress(at, all);
            pause().await;
        }
        Ok(())
    }

    /// Rows of a table, by token.
    async fn embed(
        &self,
        step: &Step<'_>,
        table: &rullama_graph::WeightInfo,
        scale: f32,
        soft: SoftRows,
        out: &mut [f32],
    ) -> Result<(), CpuError> {
        let width = table.width as usize;
        let mut places = Vec::with_capacity(step.rows.len());
        for (row, out) in step.rows.iter().zip(out.chunks_mut(width)) {
            let token = match (row, soft) {
                (Row::Token(id), _) => *id,
                (Row::Soft(_), SoftRows::Token(id)) => id,
                (Row::Soft(given), SoftRows::Given) => {
                    if given.len() != width {
                        return Err(CpuError::SoftWidth { found: given.len(), expected: width });
                    }
                    out.copy_from_slice(given);
                    continue;
                }
            };
            if token >= table.rows {
                return Err(CpuError::UnknownToken { id: token, vocabulary: table.rows });
            }
            places.push((token, out));
        }
        self.weights.table_rows(table, places, scale).await
    }

    /// Computes an operation whose matrices are not held, piece by piece.
    async fn streamed(&self, run: &mut Run<'_>, index: usize) -> Result<(), CpuError> {
        let graph = run.graph;
        let op = &graph.nodes()[index].op;
        let (Op::Linear { x, weight, .. } | Op::ExpertLinear { x, weight, .. }) = *op else {
            unreachable!("only products have matrices");
        };
        let info = graph.weight(weight);
        let format = self.weights.format(info)?;
        let mut out = run.begin_product(index, x, format);
        for (matrix, places) in run.places(op, info) {
            let mut done = 0;
            while done < info.rows as usize {
                let piece = self.weights.piece(info, matrix, done).await?;
                run.multiply(x, piece.rows(), info, &places, done, &mut out);
                done += piece.count();
            }
        }
        run.finish_product(index, out, self.weights.factor(graph, info))
    }
}

/// Counts the rows of a step, and refuses one whose rows or inputs are not those of the graph.
fn row_counts(graph: &Graph, step: &Step<'_>) -> Result<RowCounts, CpuError> {
    if step.rows.is_empty() && graph.nodes().iter().any(|node| node.shape.rows == Rows::Step) {
        return Err(CpuError::EmptyStep);
    }
    let given = |name: &str| step.inputs.iter().find(|(given, _)| *given == name).map(|(_, values)| *values);
    let first = |domain| {
        let of = |info: &&rullama_graph::InputInfo| info.shape.rows == Rows::Of(domain);
        let input = graph.inputs().iter().find(of);
        input.and_then(|info| Some(given(&info.name)?.len() / info.shape.width as usize)).unwrap_or(0)
    };
    let counts = graph.row_counts(step.rows.len(), step.rows.len().min(1), first);
    for info in graph.inputs() {
        let values = given(&info.name).ok_or_else(|| CpuError::MissingInput { input: info.name.clone() })?;
        let expected = counts.of(info.shape.rows) * info.shape.width as usize;
        if values.is_empty() || values.len() != expected {
            return Err(CpuError::WrongInput { input: info.name.clone(), values: values.len() });
        }
    }
    Ok(counts)
}

/// Gives way once, so that a step can be dropped and others are not kept waiting.
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

impl std::fmt::Debug for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executor").field("kernels", &self.kernels).finish_non_exhaustive()
    }
}
