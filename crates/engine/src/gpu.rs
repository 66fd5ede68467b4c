//! The GPU as a backend.

use std::rc::Rc;

use rullama_gemma::{Config, Outputs, text};
use rullama_gguf::Model;
use rullama_gpu::{CacheFormat, Gpu, GpuError, GpuModel, GpuState, ModelOptions};

use crate::{Backend, Choosing, EngineError, KvFormat, Logits, Pending, State, Watcher, device_sampling};

/// A model on a GPU.
pub(crate) struct GpuBackend {
    model: Rc<GpuModel>,
}

impl GpuBackend {
    pub(crate) async fn load(
        gpu: Gpu,
        model: Rc<Model>,
        config: &Config,
        context: usize,
        kv: KvFormat,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, EngineError> {
        let cache = match kv {
            KvFormat::F32 => CacheFormat::F32,
            KvFormat::F16 => CacheFormat::F16,
            KvFormat::Q8 => CacheFormat::Q8,
        };
        let graph = text(&model, config, Outputs::Last)?;
        let options = ModelOptions::default().context(context as u32).cache(cache);
        let model = GpuModel::load(gpu, &model, graph, options, progress).await.map_err(failed)?;
        Ok(Self { model: Rc::new(model) })
    }
}

impl GpuBackend {
    pub(crate) fn model(&self) -> Rc<GpuModel> {
        self.model.clone()
    }
}

impl Backend for GpuBackend {
    fn state(&self) -> Result<Box<dyn State>, EngineError> {
        Ok(Box::new(GpuBackendState(self.model.state().map_err(failed)?)))
    }

    fn rows_at_once(&self) -> usize {
        self.model.rows_at_once()
    }
}

struct GpuBackendState(GpuState);

impl State for GpuBackendState {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// Steps are over before anybody would wonder.
    fn watch(&mut self, _watcher: Watcher) {}

    fn begin<'a>(&'a mut self, choosing: Choosing<'a>) -> Pending<'a, bool> {
        Box::pin(async move {
            let Choosing { rest, prompt, options, suppressed, seed, most } = choosing;
            let context = self.0.context();
            let Some(sampling) = device_sampling(options, suppressed, seed, context)? else {
                return Ok(false);
            };
            self.0.begin(rest, &sampling, prompt, most).await.map_err(failed)?;
            Ok(true)
        })
    }

    fn next_token(&mut self) -> Pending<'_, u32> {
        Box::pin(async { self.0.next_token().await.map_err(failed) })
    }

    fn step<'a>(&'a mut self, ids: &'a [u32], all: bool) -> Pending<'a, Logits> {
        Box::pin(async move {
            let mut values = Vec::new();
            // A plan computes the last row's logits; those of all rows are those of steps of one.
            let size = if all { 1 } else { self.0.rows_at_once() };
            let before = self.0.len();
            for ids in ids.chunks(size) {
                match self.0.step(ids).await {
                    Ok(logits) if all => values.extend(logits),
                    Ok(logits) => values = logits,
                    Err(error) => {
                        self.0.truncate(before);
                        return Err(failed(error));
                    }
                }
            }
            let vocabulary = self.0.vocabulary();
            Ok(Logits { values, vocabulary })
        })
    }
}

fn failed(error: GpuError) -> EngineError {
    EngineError::Step { code: error.code(), source: Box::new(error) }
}
