//! Models of the test data, ready to run here and on the reference.

use std::rc::Rc;

use rullama_cpu::{Caches, Executor, Output, Step};
use rullama_gemma::{Config, Outputs, text};
use rullama_gguf::{MemorySource, Model};
use rullama_graph::{CacheFormat, Graph};

/// Every model of the test data.
pub(crate) const MODELS: [&str; 7] = [
    "micro-e2b-F16",
    "micro-e2b-Q8_0",
    "micro-e2b-Q8_0-ollama",
    "micro-e2b-Q4_0",
    "tiny-e2b-Q4_K_M",
    "tiny-dense-Q4_K_M",
    "tiny-moe-Q4_K_M",
];

pub(crate) fn testdata(path: &str) -> String {
    format!("{}/../../testdata/{path}", env!("CARGO_MANIFEST_DIR"))
}

/// A model with its weights.
pub(crate) struct Loaded {
    pub(crate) executor: Executor,
    pub(crate) model: Rc<Model>,
    config: Config,
}

impl Loaded {
    pub(crate) fn open(name: &str) -> Self {
        Self::with_memory(name, 1 << 30)
    }

    /// The same with weights of at most `memory` bytes held.
    pub(crate) fn with_memory(name: &str, memory: u64) -> Self {
        let bytes = std::fs::read(testdata(&format!("gguf/{name}.gguf"))).unwrap();
        Self::from_bytes(name, bytes, memory)
    }

    pub(crate) fn from_bytes(name: &str, bytes: Vec<u8>, memory: u64) -> Self {
        let model = pollster::block_on(Model::open(Box::new(MemorySource::named(name, bytes)))).unwrap();
        let (config, model) = (Config::read(&model).unwrap(), Rc::new(model));
        Self { executor: Executor::new(model.clone(), memory), model, config }
    }

    /// The same model with other instructions.
    pub(crate) fn with_instructions(self, name: &str) -> Self {
        Self { executor: self.executor.with_instructions(name), ..self }
    }

    pub(crate) fn graph(&self, outputs: Outputs) -> Graph {
        text(&self.model, &self.config, outputs).unwrap()
    }

    pub(crate) fn caches(&self, format: CacheFormat) -> Caches {
        Caches::new(&self.graph(Outputs::All), format)
    }

    pub(crate) fn step(&self, graph: &Graph, caches: &mut Caches, ids: &[u32]) -> Output {
        let step = Step::tokens(ids);
        let mut progress = |_, _| {};
        let run = self.executor.run(graph, caches, &step, &mut progress);
        pollster::block_on(run).unwrap().swap_remove(0)
    }
}

/// The most probable token; of several, the first.
pub(crate) fn argmax(logits: &[f32]) -> u32 {
    let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    logits.iter().position(|&logit| logit == best).unwrap() as u32
}

/// By how much the largest logit exceeds the next.
pub(crate) fn margin(logits: &[f32]) -> f32 {
    let mut sorted = logits.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    sorted[0] - sorted[1]
}
