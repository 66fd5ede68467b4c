//! A loaded model.

use std::rc::Rc;

use rullama_chat::PromptStyle;
use rullama_gemma::{Config, Warning};
use rullama_gguf::Model;
use rullama_graph::CacheFormat;
use rullama_tokenizer::Tokenizer;

use crate::{Backend, EngineError, Entropy, OptionRange, Session, media::Towers, prompt_style};

/// Weights that the CPU backend keeps in memory unless told otherwise.
const WEIGHT_MEMORY: u64 = 8 << 30;

/// How a model is loaded.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Tokens a conversation may have; without it, as many as `default_context` says.
    pub context: Option<u32>,
    /// The same, if the model was made for so many, else as many as it was made for; without it, 4096 on a GPU, where memory
    /// is reserved for all of them, and as many as the model was made for on the CPU.
    pub default_context: Option<u32>,
    /// The format of keys and values.
    pub kv: CacheFormat,
    /// Bytes of weights that are held in memory; the others are read again for each token.
    pub weight_memory: u64,
    /// Bytes of a GPU's memory that the model and one conversation may take; without it, as many as there are.
    pub gpu_memory: Option<u64>,
    /// Where weights live if they run on a GPU; without it, the fastest way that fits.
    #[cfg(feature = "gpu")]
    pub residency: Option<rullama_gpu::Residency>,
    /// The most tokens of a prompt that a GPU reads at once; without it, as many as are read fastest.
    #[cfg(feature = "gpu")]
    pub rows: Option<u32>,
    /// Conversations that a GPU keeps at once, at most; without it, a few. Those beyond are read again when they go on.
    #[cfg(feature = "gpu")]
    pub conversations: Option<u32>,
    /// What is done about a GPU that is lost again and again.
    #[cfg(feature = "gpu")]
    pub unsteady: crate::Unsteady,
    /// The style of prompts, if the model's package states one; without it, [`prompt_style`] decides.
    pub prompts: Option<PromptStyle>,
    /// The source of seeds for replies whose options name none.
    pub entropy: Entropy,
    /// Whether the weights of towers stay in memory after an image or a sound was encoded. Without, they are read again for the
    /// next.
    pub keep_towers: bool,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            context: None,
            default_context: None,
            kv: CacheFormat::F32,
            weight_memory: WEIGHT_MEMORY,
            gpu_memory: None,
            #[cfg(feature = "gpu")]
            residency: None,
            #[cfg(feature = "gpu")]
            rows: None,
            #[cfg(feature = "gpu")]
            conversations: None,
            #[cfg(feature = "gpu")]
            unsteady: crate::Unsteady::default(),
            prompts: None,
            entropy: Entropy::default(),
            keep_towers: true,
        }
    }
}

impl LoadOptions {
    /// Sets the size of the context.
    #[must_use]
    pub fn context(mut self, tokens: u32) -> Self {
        self.context = Some(tokens);
        self
    }

    /// Sets the format of keys and values.
    #[must_use]
    pub fn kv(mut self, format: CacheFormat) -> Self {
        self.kv = format;
        self
    }

    /// Sets how much of a GPU's memory may be taken.
    #[must_use]
    pub fn gpu_memory(mut self, bytes: u64) -> Self {
        self.gpu_memory = Some(bytes);
        self
    }

    /// Sets where weights live if they run on a GPU.
    #[cfg(feature = "gpu")]
    #[must_use]
    pub fn residency(mut self, residency: rullama_gpu::Residency) -> Self {
        self.residency = Some(residency);
        self
    }

    /// Sets the style of prompts.
    #[must_use]
    pub fn prompts(mut self, style: PromptStyle) -> Self {
        self.prompts = Some(style);
        self
    }

    /// Sets the source of seeds for replies whose options name none.
    #[must_use]
    pub fn entropy(mut self, entropy: Entropy) -> Self {
        self.entropy = entropy;
        self
    }

    /// Refuses numbers outside of their ranges, by name.
    fn validate(&self) -> Result<(), EngineError> {
        if let Some(context) = self.context {
            OptionRange::CONTEXT.check_whole("context", context)?;
        }
        if let Some(bytes) = self.gpu_memory {
            OptionRange::MEMORY.check_whole("memory", bytes)?;
        }
        #[cfg(feature = "gpu")]
        if let Some(rows) = self.rows {
            OptionRange::ROWS.check_whole("rows", rows)?;
        }
        Ok(())
    }
}

/// A loaded model. Immutable and cheap to clone; conversations are its [`Session`]s.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Rc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) config: Config,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) backend: Box<dyn Backend>,
    pub(crate) context: usize,
    pub(crate) prompts: PromptStyle,
    pub(crate) entropy: Entropy,
    pub(crate) towers: Towers,
    warnings: Vec<Warning>,
    #[cfg(feature = "gpu")]
    gpu: Option<Rc<crate::gpu::Shared>>,
}

impl Engine {
    /// Checks a model and makes it ready to run on the CPU. Weights are read when they are first needed.
    #[cfg(feature = "cpu")]
    pub fn load(model: Model, options: &LoadOptions) -> Result<Self, EngineError> {
        Self::with_backend(model, options, |model, config| {
            let cpu = crate::cpu::Cpu::new(model, config, options.kv, options.weight_memory)?;
            Ok(Box::new(cpu))
        })
    }

    /// Checks a model and makes it ready to run on the plain interpreter that every other backend is measured against:
    /// exact, and slow. Weights are read when they are first needed.
    #[cfg(feature = "cpu")]
    pub fn load_reference(model: Model, options: &LoadOptions) -> Result<Self, EngineError> {
        Self::with_backend(model, options, |model, config| {
            let reference =
                crate::reference::Reference::new(model, config, options.kv, options.weight_memory)?;
            Ok(Box::new(reference))
        })
    }

    /// Checks a model and uploads it to a GPU. Without a context in the options, conversations may have 4096 tokens,
    /// because memory is reserved for each token. `progress` gets the bytes uploaded and their total.
    #[cfg(feature = "gpu")]
    pub async fn load_on(
        gpu: rullama_gpu::Gpu,
        model: Model,
        options: &LoadOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, EngineError> {
        let checked = Checked::for_gpu(&model, options)?;
        let (config, context, model) = (&checked.config, checked.context, Rc::new(model));
        let shared = crate::gpu::Shared::load(gpu, model.clone(), config, context, options, progress).await?;
        let shared = Rc::new(shared);
        let backend = crate::gpu::GpuBackend::new(shared.clone());
        let mut engine = checked.with(Box::new(backend), model);
        if let Some(inner) = Rc::get_mut(&mut engine.inner) {
            inner.gpu = Some(shared);
        }
        Ok(engine)
    }

    /// Checks a model and makes its towers ready to run on a GPU, without its text model: it encodes images and sound, and has
    /// no sessions. Weights are read when something is first encoded.
    #[cfg(feature = "gpu")]
    pub fn load_towers_on(
        gpu: rullama_gpu::Gpu,
        model: Model,
        options: &LoadOptions,
    ) -> Result<Self, EngineError> {
        Self::with_backend(model, options, |model, _| {
            let towers = crate::gpu_towers_alone::GpuTowersAlone::new(gpu, model, options.gpu_memory);
            Ok(Box::new(towers))
        })
    }

    /// Makes every check that [`load_on`](Self::load_on) makes before it reads weights, with the same errors, and reads only
    /// the header.
    #[cfg(feature = "gpu")]
    pub async fn inspect_on(
        gpu: &rullama_gpu::Gpu,
        model: &Model,
        options: &LoadOptions,
    ) -> Result<Inspection, EngineError> {
        let Checked { config, context, warnings, .. } = Checked::for_gpu(model, options)?;
        let (graph, wanted) = crate::gpu::wanted(model, &config, context, options)?;
        let fit = rullama_gpu::GpuModel::fit(gpu, model, &graph, &wanted, config.context_length).await;
        let fit = fit.map_err(crate::gpu::failed)?;
        Ok(Inspection { config, context, warnings, fit })
    }

    /// The model on the GPU, where it is on one: what its plans do, what was converted. Replaced when the device is lost
    /// and the model is loaded again; gone when it was [moved to the CPU](crate::Unsteady::Cpu).
    #[cfg(feature = "gpu")]
    pub fn gpu_model(&self) -> Option<Rc<rullama_gpu::GpuModel>> {
        self.inner.gpu.as_ref().filter(|shared| !shared.has_moved()).map(|shared| shared.model())
    }

    /// Bytes of keys and values that a conversation which fills the context has on the CPU.
    #[cfg(feature = "cpu")]
    pub fn cpu_cache_bytes(&self, kv: CacheFormat) -> u64 {
        let own = self.config().layers.iter().filter(|layer| layer.kv == rullama_gemma::KvSource::Own);
        own.map(|layer| {
            let rows = layer.window.map_or(self.context(), |window| {
                self.context().min(window as usize + rullama_cpu::Caches::MOST_USELESS_ROWS)
            });
            let values = 2 * u64::from(layer.kv_heads) * u64::from(layer.head_width) * rows as u64;
            match kv {
                CacheFormat::F32 => 4 * values,
                CacheFormat::F16 => 2 * values,
                // A byte, and a scale of four bytes for each 32 of them.
                CacheFormat::Q8 => values + values / 8,
            }
        })
        .sum()
    }

    /// Bytes of a model's weights that the CPU keeps in memory if there is room: all but the tables, of which it reads rows.
    #[cfg(feature = "cpu")]
    pub fn cpu_weight_bytes(model: &Model) -> Result<u64, EngineError> {
        crate::cpu::held_bytes(model, &Config::read(model)?)
    }

    /// Checks a model and makes it ready to run on the backend that `make` makes for it.
    pub fn with_backend(
        model: Model,
        options: &LoadOptions,
        make: impl FnOnce(Rc<Model>, &Config) -> Result<Box<dyn Backend>, EngineError>,
    ) -> Result<Self, EngineError> {
        let checked = Checked::new(&model, options)?;
        let model = Rc::new(model);
        let backend = make(model.clone(), &checked.config)?;
        Ok(checked.with(backend, model))
    }

    /// A new conversation.
    pub fn session(&self) -> Result<Session, EngineError> {
        Session::new(self.clone())
    }

    /// What the model is like.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.inner.tokenizer
    }

    /// What is not as expected in the model's file. The model runs all the same.
    pub fn warnings(&self) -> &[Warning] {
        &self.inner.warnings
    }

    /// The style of the model's prompts.
    pub fn prompts(&self) -> PromptStyle {
        self.inner.prompts
    }

    /// Tokens a conversation may have.
    pub fn context(&self) -> usize {
        self.inner.context
    }
}

/// What [`Engine::inspect_on`] finds in a model that can be loaded.
#[cfg(feature = "gpu")]
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Inspection {
    /// The model's configuration.
    pub config: Config,
    /// Tokens that a conversation would have room for.
    pub context: usize,
    /// What is not as expected in the model's file. The model runs all the same.
    pub warnings: Vec<Warning>,
    /// How the GPU would hold it, and how much memory that takes.
    pub fit: rullama_gpu::Fit,
}

/// A model that passed all checks that do not depend on a backend.
struct Checked {
    config: Config,
    tokenizer: Tokenizer,
    context: usize,
    prompts: PromptStyle,
    entropy: Entropy,
    keep_towers: bool,
    warnings: Vec<Warning>,
}

impl Checked {
    fn new(model: &Model, options: &LoadOptions) -> Result<Self, EngineError> {
        options.validate()?;
        let config = Config::read(model)?;
        let tokenizer = Tokenizer::from_gguf(model.header())?;
        let most = config.context_length;
        let context = match options.context {
            None => options.default_context.map_or(most, |context| context.min(most)),
            Some(asked) if asked > most => return Err(EngineError::ContextTooLarge { asked, most }),
            Some(asked) => asked,
        };
        let context = context as usize;
        let prompts = options.prompts.map_or_else(|| prompt_style(model), Ok)?;
        let warnings = rullama_gemma::warnings(model, &config);
        let &LoadOptions { entropy, keep_towers, .. } = options;
        Ok(Self { config, tokenizer, context, prompts, entropy, keep_towers, warnings })
    }

    /// The same for a GPU, where memory is reserved for the whole context: 4096 tokens unless the options say otherwise.
    #[cfg(feature = "gpu")]
    fn for_gpu(model: &Model, options: &LoadOptions) -> Result<Self, EngineError> {
        const CONTEXT: u32 = 4096;
        let default_context = options.default_context.or(Some(CONTEXT));
        Self::new(model, &LoadOptions { default_context, ..options.clone() })
    }

    fn with(self, backend: Box<dyn Backend>, model: Rc<Model>) -> Engine {
        let Self { config, tokenizer, context, prompts, entropy, keep_towers, warnings } = self;
        let towers = Towers::new(model, &config, keep_towers);
        let inner = Inner {
            config,
            tokenizer,
            backend,
            context,
            prompts,
            entropy,
            towers,
            warnings,
            #[cfg(feature = "gpu")]
            gpu: None,
        };
        Engine { inner: Rc::new(inner) }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("config", &self.inner.config)
            .field("context", &self.inner.context)
            .finish()
    }
}
