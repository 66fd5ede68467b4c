//! Models of the test data, ready to run.

use std::rc::Rc;

use rullama_gemma::{Config, Outputs, text};
use rullama_gguf::{MemorySource, Model};
use rullama_graph::Graph;
use rullama_reference::{CacheFormat, Caches, Weights};

pub(crate) fn testdata(path: &str) -> String {
    format!("{}/../../testdata/{path}", env!("CARGO_MANIFEST_DIR"))
}

/// A model with its weights.
pub(crate) struct Loaded {
    pub(crate) weights: Weights,
    config: Config,
}

impl Loaded {
    pub(crate) fn open(name: &str) -> Self {
        Self::with_memory(name, 1 << 30)
    }

    /// The same with weights of at most `memory` bytes held.
    pub(crate) fn with_memory(name: &str, memory: u64) -> Self {
        Self::from_bytes(name, std::fs::read(testdata(&format!("gguf/{name}.gguf"))).unwrap(), memory)
    }

    pub(crate) fn from_bytes(name: &str, bytes: Vec<u8>, memory: u64) -> Self {
        let model = pollster::block_on(Model::open(Box::new(MemorySource::named(name, bytes)))).unwrap();
        let config = Config::read(&model).unwrap();
        Self { weights: Weights::new(Rc::new(model), memory), config }
    }

    pub(crate) fn graph(&self, outputs: Outputs) -> Graph {
        text(self.weights.model(), &self.config, outputs).unwrap()
    }

    /// A tensor of f32.
    pub(crate) fn vector(&self, name: &str) -> Vec<f32> {
        let tensor = self.weights.model().tensor(name).unwrap();
        let bytes = pollster::block_on(self.weights.model().read(tensor.range())).unwrap();
        let mut values = vec![0.0; tensor.shape.values() as usize];
        tensor.format.decode(&bytes, &mut values).unwrap();
        values
    }

    pub(crate) fn caches(&self, format: CacheFormat) -> Caches {
        Caches::new(&self.graph(Outputs::All), format)
    }
}

/// The most probable token; of several, the first.
pub(crate) fn argmax(logits: &[f32]) -> u32 {
    let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    logits.iter().position(|&logit| logit == best).unwrap() as u32
}
