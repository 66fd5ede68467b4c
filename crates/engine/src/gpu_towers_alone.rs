//! The towers of a model on the GPU, without its text model, for callers that want soft rows only.

use std::rc::Rc;

use futures_util::lock::Mutex;
use rullama_gguf::Model;
use rullama_gpu::{EncoderOptions, Gpu, GpuEncoder, GpuWeights};
use rullama_graph::Graph;

use crate::{
    Backend, EncodeProgress, Encoder, EngineError, LogitRows, Pending, State,
    gpu::failed,
    gpu_tower::{encoded, loading},
};

/// A backend that only encodes.
pub(crate) struct GpuTowersAlone {
    weights: Rc<GpuWeights>,
    options: EncoderOptions,
}

impl GpuTowersAlone {
    /// The towers of `model` on `gpu`, in at most `memory` bytes. Nothing is read before something is encoded.
    pub(crate) fn new(gpu: Gpu, model: Rc<Model>, memory: Option<u64>) -> Self {
        let options = EncoderOptions::default();
        let options = memory.map_or(options, |bytes| options.memory(bytes));
        Self { weights: GpuWeights::new(gpu, model), options }
    }
}

impl Backend for GpuTowersAlone {
    fn state(&self) -> Result<Box<dyn State>, EngineError> {
        Err(EngineError::TowersAlone)
    }

    fn rows_at_once(&self, _logits: LogitRows) -> usize {
        1
    }

    fn encoder(&self, graph: Graph) -> Result<Box<dyn Encoder>, EngineError> {
        let (weights, options) = (self.weights.clone(), self.options);
        Ok(Box::new(Tower { weights, options, graph, loaded: Mutex::new(None) }))
    }
}

struct Tower {
    weights: Rc<GpuWeights>,
    options: EncoderOptions,
    graph: Graph,
    /// Held during a run.
    loaded: Mutex<Option<GpuEncoder>>,
}

impl Encoder for Tower {
    fn run<'a>(
        &'a self,
        inputs: &'a [(&'a str, &'a [f32])],
        progress: &'a mut dyn FnMut(EncodeProgress),
    ) -> Pending<'a, Vec<f32>> {
        Box::pin(async move {
            let mut loaded = self.loaded.lock().await;
            let encoder = match &*loaded {
                Some(encoder) => encoder,
                None => {
                    let graph = self.graph.clone();
                    let mut told = |done, all| progress(loading(done, all));
                    let encoder = GpuEncoder::load(&self.weights, graph, self.options, &mut told).await;
                    loaded.insert(encoder.map_err(failed)?)
                }
            };
            encoded(encoder, inputs, progress).await
        })
    }

    fn release(&self) {
        // A tower that is running is needed.
        if let Some(encoder) = self.loaded.try_lock().as_deref().and_then(Option::as_ref) {
            encoder.release();
        }
    }
}
