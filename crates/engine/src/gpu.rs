//! The GPU as a backend.
//!
//! A GPU can be lost: its driver crashes, the system removes it, a browser takes it away. Its memory is lost with it. The
//! first state that notices opens the GPU again and loads the model again from its source; the other states use the model
//! that it loaded. Each starts with an empty cache, and its session reads the conversation again. A GPU that is lost again and
//! again is given up, if the options say so: then all states end, or go on on the CPU.

use std::{cell::RefCell, rc::Rc};

use futures_util::lock::Mutex;
use rullama_gemma::{Config, Medium, Outputs, text};
use rullama_gguf::Model;
use rullama_gpu::{Gpu, GpuError, GpuModel, GpuState, GpuWeights, ModelOptions, RowInput, StepInput};
use rullama_graph::{Ahead, Graph};
use rullama_media::Budget;

use crate::{
    Backend, Choosing, Encoder, EngineError, LoadOptions, LogitRows, Logits, Pending, Recovery, State,
    StepRow, StepRows, Watcher, gpu_tower::GpuTower, losses::Losses,
};

/// What a load puts on the GPU, and how.
pub(crate) fn wanted(
    source: &Model,
    config: &Config,
    context: usize,
    options: &LoadOptions,
) -> Result<(Graph, ModelOptions), EngineError> {
    let graph = text(source, config, Outputs::Last)?;
    let mut wanted = ModelOptions::default().context(context as u32).cache(options.kv);
    (wanted.memory, wanted.residency) = (options.gpu_memory, options.residency);
    // Where the rows of an image are read together, a step has room for the finest image.
    let reads_images_whole = config.ahead() == Ahead::Span && Medium::of(source).contains(&Medium::Vision);
    let finest = Budget::ALL.map(Budget::soft_tokens).into_iter().max();
    if let Some(rows) = options.rows.or(finest.filter(|_| reads_images_whole)) {
        wanted = wanted.rows(rows);
    }
    if let Some(conversations) = options.conversations {
        wanted = wanted.conversations(conversations);
    }
    Ok((graph, wanted))
}

/// The model on the GPU. Replaced when the device is lost and the model is loaded again.
pub(crate) struct Shared {
    loaded: RefCell<Rc<GpuModel>>,
    /// Held while the model is loaded again, so that sessions that lose the GPU together load it once.
    turn: Mutex<()>,
    losses: Losses,
    /// Bytes that may be taken on the GPU.
    memory: Option<u64>,
    #[cfg(feature = "cpu")]
    cpu: OnCpu,
}

/// The same model on the CPU, once it had to leave the GPU.
#[cfg(feature = "cpu")]
struct OnCpu {
    backend: std::cell::OnceCell<crate::cpu::Cpu>,
    config: Config,
    options: LoadOptions,
}

impl Shared {
    pub(crate) async fn load(
        gpu: Gpu,
        source: Rc<Model>,
        config: &Config,
        context: usize,
        options: &LoadOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, EngineError> {
        let (graph, wanted) = wanted(&source, config, context, options)?;
        let weights = GpuWeights::new(gpu, source);
        let loaded = GpuModel::load(&weights, graph, wanted, progress).await.map_err(failed)?;
        Ok(Self {
            loaded: RefCell::new(Rc::new(loaded)),
            turn: Mutex::new(()),
            losses: Losses::new(options.unsteady),
            memory: options.gpu_memory,
            #[cfg(feature = "cpu")]
            cpu: OnCpu {
                backend: std::cell::OnceCell::new(),
                config: config.clone(),
                options: options.clone(),
            },
        })
    }

    /// The model that was loaded last.
    pub(crate) fn model(&self) -> Rc<GpuModel> {
        self.loaded.borrow().clone()
    }

    /// Bytes that may be taken on the GPU; without a limit, nothing.
    pub(crate) fn memory(&self) -> Option<u64> {
        self.memory
    }

    /// The CPU, if the model had to leave the GPU.
    pub(crate) fn moved(&self) -> Option<&dyn Backend> {
        #[cfg(feature = "cpu")]
        return self.cpu.backend.get().map(|cpu| cpu as &dyn Backend);
        #[cfg(not(feature = "cpu"))]
        None
    }

    pub(crate) fn has_moved(&self) -> bool {
        self.moved().is_some()
    }

    /// The model on a GPU that is not lost, loaded again if it is; or nothing, if it is on the CPU from now on.
    pub(crate) async fn recovered(&self) -> Result<Option<Rc<GpuModel>>, EngineError> {
        let _turn = self.turn.lock().await;
        if self.has_moved() {
            return Ok(None);
        }
        let before = self.model();
        if !before.gpu().is_lost() {
            return Ok(Some(before));
        }
        let again = if self.losses.note() {
            Err(failed(GpuError::Lost { reason: "twice within a minute".into() }))
        } else {
            self.loaded_again(&before).await
        };
        match (again, self.losses.unsteady()) {
            (Ok(model), _) => Ok(Some(model)),
            #[cfg(feature = "cpu")]
            (Err(error), crate::Unsteady::Cpu { told, .. }) => {
                let OnCpu { backend, config, options } = &self.cpu;
                let source = before.weights().source().clone();
                let cpu = crate::cpu::Cpu::new(source, config, options.kv, options.weight_memory)?;
                before.gpu().destroy();
                told(&error);
                backend.get_or_init(|| cpu);
                Ok(None)
            }
            (Err(error), _) => Err(error),
        }
    }

    async fn loaded_again(&self, before: &GpuModel) -> Result<Rc<GpuModel>, EngineError> {
        let weights = before.weights().reopen().await.map_err(failed)?;
        let loaded = Rc::new(before.reload(&weights, &mut |_, _| {}).await.map_err(failed)?);
        *self.loaded.borrow_mut() = loaded.clone();
        Ok(loaded)
    }
}

/// Makes states for a model on a GPU.
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
        if let Some(cpu) = self.shared.moved() {
            return cpu.state();
        }
        let model = self.shared.model();
        let state = model.state().map_err(failed)?;
        Ok(Box::new(GpuBackendState { shared: self.shared.clone(), model, state }))
    }

    fn rows_at_once(&self, logits: LogitRows) -> usize {
        if let Some(cpu) = self.shared.moved() {
            return cpu.rows_at_once(logits);
        }
        match logits {
            LogitRows::None | LogitRows::Last => self.shared.model().rows_at_once(),
            // The graph on the GPU gives the logits of the last row only.
            LogitRows::All => 1,
        }
    }

    fn rows_together(&self, logits: LogitRows) -> usize {
        match self.shared.moved() {
            Some(cpu) => cpu.rows_together(logits),
            None => self.rows_at_once(logits),
        }
    }

    fn encoder(&self, graph: Graph) -> Result<Box<dyn Encoder>, EngineError> {
        Ok(Box::new(GpuTower::new(self.shared.clone(), graph)))
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

    /// GPU steps finish too quickly to need progress.
    fn watch(&mut self, _watcher: Watcher) {}

    fn begin<'a>(&'a mut self, choosing: Choosing<'a>) -> Pending<'a, bool> {
        Box::pin(async move {
            let Choosing { unread, tokens, sampler, most } = choosing;
            let sampling = sampler.on_device(self.state.context());
            let Some(sampling) = sampling.filter(|_| self.model.can_choose()) else { return Ok(false) };
            self.state.begin(input(unread), &sampling, tokens, most).await.map_err(failed)?;
            Ok(true)
        })
    }

    fn end(&mut self) {
        self.state.end();
    }

    fn next_token(&mut self) -> Pending<'_, u32> {
        Box::pin(async { self.state.next_token().await.map_err(failed) })
    }

    fn step<'a>(&'a mut self, rows: StepRows<'a>, logits: LogitRows) -> Pending<'a, Logits> {
        Box::pin(async move {
            let values = match logits {
                LogitRows::None => self.state.read(input(rows)).await.map(|()| Vec::new()),
                LogitRows::Last | LogitRows::All => self.state.step(input(rows)).await,
            };
            Ok(Logits { values: values.map_err(failed)?, vocabulary: self.state.vocabulary() })
        })
    }

    fn recover(&mut self) -> Pending<'_, Recovery> {
        Box::pin(async {
            match (self.shared.recovered().await?, self.shared.moved()) {
                (Some(model), _) => {
                    self.state = model.state().map_err(failed)?;
                    self.model = model;
                    Ok(Recovery::Again)
                }
                (None, Some(cpu)) => Ok(Recovery::Elsewhere(cpu.state()?)),
                (None, None) => Ok(Recovery::None),
            }
        })
    }
}

/// Rows as the GPU takes them.
fn input(rows: StepRows<'_>) -> StepInput<'_> {
    let row = |row| match row {
        StepRow::Token(id) => RowInput::Token(id),
        StepRow::Soft(values) => RowInput::Soft(values),
    };
    StepInput { rows: rows.iter().map(row).collect(), spans: rows.joined().collect() }
}

pub(crate) fn failed(error: GpuError) -> EngineError {
    match error {
        GpuError::NotFinite { value, tokens } => EngineError::NotFinite { value: value.to_owned(), tokens },
        error @ GpuError::Lost { .. } => EngineError::DeviceLost(Box::new(error)),
        GpuError::Evicted => EngineError::Evicted,
        error => EngineError::Step { code: error.code(), source: Box::new(error) },
    }
}
