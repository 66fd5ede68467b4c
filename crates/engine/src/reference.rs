//! The plain interpreter as a backend: exact and slow. Other backends are measured against it.

use std::rc::Rc;

use rullama_gemma::{Config, Outputs, text};
use rullama_gguf::Model;
use rullama_graph::Graph;
use rullama_reference::{Caches, ReferenceError, Row, Sequence, Step, Watch, Weights, run};

use crate::{
    Backend, CacheFormat, Encoder, EngineError, LogitRows, Logits, Pending, State, StepProgress, StepRow,
    StepRows, Watcher, reference_tower::ReferenceTower,
};

/// The most rows of a step. Larger steps decode the weights less often; smaller ones can be cancelled sooner.
const ROWS_AT_ONCE: usize = 64;

/// Runs a model with the reference.
pub(crate) struct Reference {
    shared: Rc<Shared>,
    kv: CacheFormat,
}

struct Shared {
    model: Rc<Model>,
    memory: u64,
    weights: Weights,
    last: Graph,
    all: Graph,
}

impl Reference {
    pub(crate) fn new(
        model: Rc<Model>,
        config: &Config,
        kv: CacheFormat,
        memory: u64,
    ) -> Result<Self, EngineError> {
        let last = text(&model, config, Outputs::Last)?;
        let all = text(&model, config, Outputs::All)?;
        let weights = Weights::new(model.clone(), memory);
        Ok(Self { shared: Rc::new(Shared { model, memory, weights, last, all }), kv })
    }
}

impl Backend for Reference {
    fn state(&self) -> Result<Box<dyn State>, EngineError> {
        Ok(Box::new(ReferenceState {
            caches: Caches::new(&self.shared.last, self.kv),
            shared: self.shared.clone(),
            watcher: None,
        }))
    }

    fn rows_at_once(&self, _logits: LogitRows) -> usize {
        ROWS_AT_ONCE
    }

    fn rows_together(&self, _logits: LogitRows) -> usize {
        usize::MAX
    }

    fn encoder(&self, graph: Graph) -> Result<Box<dyn Encoder>, EngineError> {
        let Shared { model, memory, .. } = &*self.shared;
        Ok(Box::new(ReferenceTower::new(model.clone(), graph, *memory)))
    }
}

struct ReferenceState {
    shared: Rc<Shared>,
    caches: Caches,
    watcher: Option<Watcher>,
}

/// Forwards the interpreter's progress to a watcher.
struct Progress {
    rows: usize,
    watcher: Option<Watcher>,
}

impl Watch for Progress {
    fn progress(&mut self, done: usize, all: usize) {
        if let Some(watcher) = &self.watcher {
            watcher(StepProgress { rows: self.rows, done, all });
        }
    }
}

impl State for ReferenceState {
    fn len(&self) -> usize {
        self.caches.len()
    }

    fn truncate(&mut self, len: usize) {
        self.caches.truncate(len);
    }

    fn watch(&mut self, watcher: Watcher) {
        self.watcher = Some(watcher);
    }

    fn step<'a>(&'a mut self, rows: StepRows<'a>, wanted: LogitRows) -> Pending<'a, Logits> {
        Box::pin(async move {
            let Shared { weights, last, all, .. } = &*self.shared;
            let graph = if wanted == LogitRows::All { all } else { last };
            let mut progress = Progress { rows: rows.len(), watcher: self.watcher.clone() };
            let logits =
                run(graph, weights, &mut self.caches, &step(rows), &mut progress).await.map_err(failed)?;
            let vocabulary = logits.width();
            let values = if wanted == LogitRows::None { Vec::new() } else { logits.into_values() };
            Ok(Logits { values, vocabulary })
        })
    }
}

/// Rows as the interpreter takes them.
fn step(rows: StepRows<'_>) -> Step<'_> {
    let row = |row| match row {
        StepRow::Token(id) => Row::Token(id),
        StepRow::Soft(values) => Row::Soft(values),
    };
    Step::sequence(Sequence { rows: rows.iter().map(row).collect(), spans: rows.joined().collect() })
}

pub(crate) fn failed(error: ReferenceError) -> EngineError {
    match error {
        ReferenceError::NotFinite { value, tokens } => EngineError::NotFinite { value, tokens },
        error => EngineError::Step { code: error.code(), source: Box::new(error) },
    }
}
