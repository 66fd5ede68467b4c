//! A tower on the CPU.

use std::{cell::RefCell, rc::Rc};

use rullama_cpu::{Caches, Executor, Step};
use rullama_gguf::Model;
use rullama_graph::{CacheFormat, Graph};

use crate::{EncodeProgress, Encoder, Pending, cpu::failed, media::part};

/// Runs a tower's graph on the CPU. Its weights are read in the first run, and held by an executor of their own.
pub(crate) struct CpuTower {
    model: Rc<Model>,
    graph: Graph,
    /// Bytes of weights that may be held.
    memory: u64,
    executor: RefCell<Option<Rc<Executor>>>,
}

impl CpuTower {
    pub(crate) fn new(model: Rc<Model>, graph: Graph, memory: u64) -> Self {
        Self { model, graph, memory, executor: RefCell::default() }
    }
}

impl Encoder for CpuTower {
    fn run<'a>(
        &'a self,
        inputs: &'a [(&'a str, &'a [f32])],
        progress: &'a mut dyn FnMut(EncodeProgress),
    ) -> Pending<'a, Vec<f32>> {
        let executor = self
            .executor
            .borrow_mut()
            .get_or_insert_with(|| Rc::new(Executor::new(self.model.clone(), self.memory)))
            .clone();
        Box::pin(async move {
            let mut caches = Caches::new(&self.graph, CacheFormat::F32);
            // Weights are read where they are needed, so that all is computing.
            let mut told = |done, all| progress(EncodeProgress::Computing(part(done as f64, all as f64)));
            let outputs = executor.run(&self.graph, &mut caches, &Step::inputs(inputs), &mut told).await;
            Ok(outputs.map_err(failed)?.swap_remove(0).values)
        })
    }

    fn release(&self) {
        self.executor.take();
    }
}
