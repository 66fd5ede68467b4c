//! The GPU as a backend.
//!
//! A GPU can be lost: its driver crashes, it is taken away, a browser gives it to somebody else. What was on it is gone.
//! Then the first state that notices opens the GPU again and loads the model again from its source; the others find
//! both done. Each begins with an empty memory, and its session reads the conversation again.

use std::{cell::RefCell, rc::Rc};

use futures_util::lock::Mutex;
use rullama_gemma::{Config, Outputs, text};
use rullama_gguf::Model;
use rullama_gpu::{CacheFormat, Gpu, GpuError, GpuModel, GpuState, ModelOptions};
use rullama_graph::Graph;

use crate::{
    Backend, Choosing, EngineError, KvFormat, LoadOptions, Logits, Pending, State, Watcher, device_sampling,
    sampler::skip_draws,
};

/// What a load puts on the GPU, and how.
pub(crate) fn wanted(
    source: &Model,
    config: &Config,
    context: usize,
    options: &LoadOptions,
) -> Result<(Graph, ModelOptions), EngineError> {
    let cache = match options.kv {
        KvFormat::F32 => CacheFormat::F32,
        KvFormat::F16 => CacheFormat::F16,
        KvFormat::Q8 => CacheFormat::Q8,
    };
    let graph = text(source, config, Outputs::Last)?;
    let mut wanted = ModelOptions::default().context(context as u32).cache(cache);
    (wanted.memory, wanted.residency) = (options.gpu_memory, options.residency);
    if let Some(rows) = options.rows {
        wanted = wanted.rows(rows);
    }
    Ok((graph, wanted))
}

/// The model on the GPU. Replaced when the device is lost and the model is loaded again.
pub(crate) struct Shared {
    loaded: RefCell<Rc<GpuModel>>,
    /// Sessions that lose the GPU together load the model again once.
    turn: Mutex<()>,
}

impl Shared {
    pub(crate) async fn load(
        gpu: Gpu,
        source: Model,
        config: &Config,
        context: usize,
        options: &LoadOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, EngineError> {
        let (graph, wanted) = wanted(&source, config, context, options)?;
        let loaded = GpuModel::load(gpu, &Rc::new(source), graph, wanted, progress).await.map_err(failed)?;
        Ok(Self { loaded: RefCell::new(Rc::new(loaded)), turn: Mutex::new(()) })
    }

    /// The model as it was loaded last.
    pub(crate) fn model(&self) -> Rc<GpuModel> {
        self.loaded.borrow().clone()
    }

    /// The model on a GPU that is there.
    async fn recovered(&self) -> Result<Rc<GpuModel>, EngineError> {
        let _turn = self.turn.lock().await;
        let before = self.model();
        if !before.gpu().is_lost() {
            return Ok(before);
        }
        let loaded = Rc::new(before.reload(&mut |_, _| {}).await.map_err(failed)?);
        *self.loaded.borrow_mut() = loaded.clone();
        Ok(loaded)
    }
}

/// States of a model on a GPU.
pub(crate) struct GpuBackend {
    shared: Rc<Shared>,
}

impl GpuBackend {
    pub(crate) fn new(shared: Rc<Shared>) -> Self {
        Self { shared }
    }
}

impl Backend for GpuBackend {
    fn state(&self) -> Result<Box<dyn State>, EngineError> {
        let model = self.shared.model();
        let state = model.state().map_err(failed)?;
        Ok(Box::new(GpuBackendState { shared: self.shared.clone(), model, state }))
    }

    fn rows_at_once(&self) -> usize {
        self.shared.model().rows_at_once()
    }
}

struct GpuBackendState {
    shared: Rc<Shared>,
    model: Rc<GpuModel>,
    state: GpuState,
}

impl State for GpuBackendState {
    fn len(&self) -> usize {
        self.state.len()
    }

    fn truncate(&mut self, len: usize) {
        self.state.truncate(len);
    }

    /// Steps are over before anybody would wonder.
    fn watch(&mut self, _watcher: Watcher) {}

    fn begin<'a>(&'a mut self, choosing: Choosing<'a>) -> Pending<'a, bool> {
        Box::pin(async move {
            let Choosing { rest, tokens, options, suppressed, seed, drawn, most } = choosing;
            let context = self.state.context();
            let sampling = device_sampling(options, suppressed, seed, context)?;
            let Some(mut sampling) = sampling.filter(|_| self.model.can_choose()) else { return Ok(false) };
            skip_draws(&mut sampling, drawn);
            self.state.begin(rest, &sampling, tokens, most).await.map_err(failed)?;
            Ok(true)
        })
    }

    fn next_token(&mut self) -> Pending<'_, u32> {
        Box::pin(async { self.state.next_token().await.map_err(failed) })
    }

    fn step<'a>(&'a mut self, ids: &'a [u32], all: bool) -> Pending<'a, Logits> {
        Box::pin(async move {
            let mut values = Vec::new();
            // A plan computes the last row's logits; those of all rows are those of steps of one.
            let size = if all { 1 } else { self.state.rows_at_once() };
            let before = self.state.len();
            for ids in ids.chunks(size) {
                match self.state.step(ids).await {
                    Ok(logits) if all => values.extend(logits),
                    Ok(logits) => values = logits,
                    Err(error) => {
                        self.state.truncate(before);
                        return Err(failed(error));
                    }
                }
            }
            let vocabulary = self.state.vocabulary();
            Ok(Logits { values, vocabulary })
        })
    }

    fn recover(&mut self) -> Pending<'_, bool> {
        Box::pin(async {
            let model = self.shared.recovered().await?;
            self.state = model.state().map_err(failed)?;
            self.model = model;
            Ok(true)
        })
    }
}

pub(crate) fn failed(error: GpuError) -> EngineError {
    match error {
        GpuError::NotFinite { value, tokens } => EngineError::NotFinite { value: value.to_owned(), tokens },
        error => EngineError::Step { code: error.code(), source: Box::new(error) },
    }
}
