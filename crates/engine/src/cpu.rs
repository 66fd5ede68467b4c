//! The CPU reference as a backend: exact, and slow.

use std::rc::Rc;

use rullama_gemma::{Config, Outputs, text};
use rullama_gguf::Model;
use rullama_graph::Graph;
use rullama_reference::{Caches, Step, Weights, run};

use crate::{Backend, EngineError, KvFormat, Logits, State, backend::Pending};

/// Rows of a step while a prompt is read. Larger steps decode the weights less often; smaller ones can be
/// cancelled sooner.
const ROWS_AT_ONCE: usize = 64;

/// Runs a model on the CPU.
pub(crate) struct Cpu {
    shared: Rc<Shared>,
    kv: rullama_reference::KvFormat,
}

struct Shared {
    weights: Weights,
    last: Graph,
    all: Graph,
}

impl Cpu {
    pub(crate) fn new(
        model: Rc<Model>,
        config: &Config,
        kv: KvFormat,
        memory: u64,
    ) -> Result<Self, EngineError> {
        let last = text(&model, config, Outputs::Last)?;
        let all = text(&model, config, Outputs::All)?;
        let kv = match kv {
            KvFormat::F32 => rullama_reference::KvFormat::F32,
            KvFormat::F16 => rullama_reference::KvFormat::F16,
            KvFormat::Q8 => rullama_reference::KvFormat::Q8,
        };
        Ok(Self { shared: Rc::new(Shared { weights: Weights::new(model, memory), last, all }), kv })
    }
}

impl Backend for Cpu {
    fn state(&self) -> Box<dyn State> {
        Box::new(CpuState { caches: Caches::new(&self.shared.last, self.kv), shared: self.shared.clone() })
    }

    fn rows_at_once(&self) -> usize {
        ROWS_AT_ONCE
    }
}

struct CpuState {
    shared: Rc<Shared>,
    caches: Caches,
}

impl State for CpuState {
    fn len(&self) -> usize {
        self.caches.len()
    }

    fn truncate(&mut self, len: usize) {
        self.caches.truncate(len);
    }

    fn step<'a>(&'a mut self, ids: &'a [u32], all: bool) -> Pending<'a, Logits> {
        Box::pin(async move {
            let Shared { weights, last, all: every } = &*self.shared;
            let graph = if all { every } else { last };
            let logits = run(graph, weights, &mut self.caches, &Step::tokens(ids), &mut ())
                .await
                .map_err(|error| EngineError::Step { code: error.code(), source: Box::new(error) })?;
            let vocabulary = logits.width();
            Ok(Logits { values: logits.into_values(), vocabulary })
        })
    }
}
