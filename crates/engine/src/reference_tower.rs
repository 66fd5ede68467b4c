//! A tower on the plain interpreter.

use std::rc::Rc;

use rullama_gguf::Model;
use rullama_graph::Graph;
use rullama_reference::{Matrix, Step, Watch, Weights, run_together};

use crate::{EncodeProgress, Encoder, Pending, media::part, reference::failed};

/// Runs a tower's graph on the interpreter.
pub(crate) struct ReferenceTower {
    model: Rc<Model>,
    graph: Graph,
    /// Bytes of weights that may be held.
    memory: u64,
}

impl ReferenceTower {
    pub(crate) fn new(model: Rc<Model>, graph: Graph, memory: u64) -> Self {
        Self { model, graph, memory }
    }
}

/// Forwards the interpreter's progress.
struct Progress<'a>(&'a mut dyn FnMut(EncodeProgress));

impl Watch for Progress<'_> {
    fn progress(&mut self, done: usize, all: usize) {
        (self.0)(EncodeProgress::Computing(part(done as f64, all as f64)));
    }
}

impl Encoder for ReferenceTower {
    fn run<'a>(
        &'a self,
        inputs: &'a [(&'a str, &'a [f32])],
        progress: &'a mut dyn FnMut(EncodeProgress),
    ) -> Pending<'a, Vec<f32>> {
        Box::pin(async move {
            let weights = Weights::new(self.model.clone(), self.memory);
            let width = |name: &str| {
                let mut infos = self.graph.inputs().iter();
                infos.find(|info| info.name == name).map_or(1, |info| info.shape.width as usize)
            };
            let matrix =
                |&(name, values): &(&'a str, &'a [f32])| (name, Matrix::new(values.to_vec(), width(name)));
            let matrices: Vec<(&str, Matrix)> = inputs.iter().map(matrix).collect();
            let given: Vec<(&str, &Matrix)> = matrices.iter().map(|(name, matrix)| (*name, matrix)).collect();
            let step = Step::inputs(&given);
            let outputs = run_together(&self.graph, &weights, &mut [], &step, &mut Progress(progress)).await;
            Ok(outputs.map_err(failed)?.swap_remove(0).into_values())
        })
    }

    /// Nothing is held between runs.
    fn release(&self) {}
}
