//! The CPU as a backend.

use std::{collections::BTreeSet, rc::Rc};

use rullama_cpu::{Caches, CpuError, Executor, Row, Step};
use rullama_gemma::{Config, Outputs, text};
use rullama_gguf::Model;
use rullama_graph::{Graph, Op};

use crate::{
    Backend, CacheFormat, Encoder, EngineError, LogitRows, Logits, Pending, State, StepProgress, StepRow,
    StepRows, Watcher, cpu_tower::CpuTower,
};

/// The most rows of a step. Larger steps unpack the weights less often; smaller ones need less memory, and less of a prompt
/// is read again after it was cancelled.
const ROWS_AT_ONCE: usize = 64;

/// Runs a model on the CPU.
pub(crate) struct Cpu {
    shared: Rc<Shared>,
    kv: CacheFormat,
}

struct Shared {
    model: Rc<Model>,
    memory: u64,
    executor: Executor,
    last: Graph,
    all: Graph,
}

impl Cpu {
    pub(crate) fn new(
        model: Rc<Model>,
        config: &Config,
        kv: CacheFormat,
        memory: u64,
    ) -> Result<Self, EngineError> {
        let last = text(&model, config, Outputs::Last)?;
        let all = text(&model, config, Outputs::All)?;
        let executor = Executor::new(model.clone(), memory);
        Ok(Self { shared: Rc::new(Shared { model, memory, executor, last, all }), kv })
    }
}

/// Bytes of the tensors that a step multiplies with.
pub(crate) fn held_bytes(model: &Model, config: &Config) -> Result<u64, EngineError> {
    let graph = text(model, config, Outputs::Last)?;
    let multiplied = graph.nodes().iter().filter_map(|node| match node.op {
        Op::Linear { weight, .. } | Op::ExpertLinear { weight, .. } => Some(&*graph.weight(weight).tensor),
        _ => None,
    });
    let tensors: BTreeSet<&str> = multiplied.collect();
    Ok(tensors.into_iter().filter_map(|name| model.tensor(name)).map(|tensor| tensor.bytes).sum())
}

impl Backend for Cpu {
    fn state(&self) -> Result<Box<dyn State>, EngineError> {
        Ok(Box::new(CpuState {
            caches: Caches::new(&self.shared.last, self.kv),
            shared: self.shared.clone(),
            watcher: None,
        }))
    }

    fn rows_at_once(&self, _logits: LogitRows) -> usize {
        ROWS_AT_ONCE
    }

    /// Only memory limits them, and it is checked before a step.
    fn rows_together(&self, _logits: LogitRows) -> usize {
        usize::MAX
    }

    fn encoder(&self, graph: Graph) -> Result<Box<dyn Encoder>, EngineError> {
        let Shared { model, memory, .. } = &*self.shared;
        Ok(Box::new(CpuTower::new(model.clone(), graph, *memory)))
    }
}

struct CpuState {
    shared: Rc<Shared>,
    caches: Caches,
    watcher: Option<Watcher>,
}

impl State for CpuState {
    fn len(&self) -> usize {
        self.caches.len()
    }

    fn truncate(&mut self, len: usize) {
        self.caches.truncate(len);
    }

    fn watch(&mut self, watcher: Watcher) {
        self.watcher = Some(watcher);
    }

    fn step<'a>(&'a mut self, rows: StepRows<'a>, logits: LogitRows) -> Pending<'a, Logits> {
        Box::pin(async move {
            let Shared { executor, last, all, .. } = &*self.shared;
            let graph = if logits == LogitRows::All { all } else { last };
            let watcher = self.watcher.clone();
            let mut progress = |done, all| {
                if let Some(watcher) = &watcher {
                    watcher(StepProgress { rows: rows.len(), done, all });
                }
            };
            let step = step(rows);
            let outputs = executor.run(graph, &mut self.caches, &step, &mut progress).await;
            let output = outputs.map_err(failed)?.swap_remove(0);
            let values = if logits == LogitRows::None { Vec::new() } else { output.values };
            Ok(Logits { values, vocabulary: output.width })
        })
    }
}

/// Rows as the CPU takes them.
fn step(rows: StepRows<'_>) -> Step<'_> {
    let row = |row| match row {
        StepRow::Token(id) => Row::Token(id),
        StepRow::Soft(values) => Row::Soft(values),
    };
    Step { rows: rows.iter().map(row).collect(), spans: rows.joined().collect(), inputs: Vec::new() }
}

pub(crate) fn failed(error: CpuError) -> EngineError {
    match error {
        CpuError::NotFinite { value, tokens } => EngineError::NotFinite { value, tokens },
        error => EngineError::Step { code: error.code(), source: Box::new(error) },
    }
}
