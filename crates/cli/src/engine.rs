//! An engine and its options from the command line.

use std::{
    cell::Cell,
    collections::BTreeMap,
    io::{self, IsTerminal as _},
    sync::LazyLock,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rullama_engine::{
    CacheFormat, Engine, EngineError, FinishReason, GenerateOptions, LoadOptions, Session, Unsteady, Usage,
};
use rullama_gguf::Model;
use rullama_gpu::{Gpu, GpuError, GpuModel, GpuOptions, Residency};
use serde_json::{Map, Value, json};

use crate::{
    arguments::{BackendChoice, LoadArguments, MemoryArguments, SamplingArguments},
    failure::Failure,
    model::{self, Opened},
    output,
};

/// The formats of caches where nobody chose one: GPUs read half precision fastest, without visible loss.
pub(crate) const CPU_KV: CacheFormat = CacheFormat::F32;
pub(crate) const GPU_KV: CacheFormat = CacheFormat::F16;

/// Makes an opened model ready to run. The context length is the command line's, or else the model's own default.
pub(crate) async fn load(
    opened: Opened,
    backend: BackendChoice,
    arguments: &LoadArguments,
    own_context: Option<u32>,
) -> Result<Engine, Failure> {
    let mut options = LoadOptions::default().prompts(opened.prompt_style()?);
    options.context = arguments.context.or(own_context);
    opened.check(options.context)?;
    let gpu = choose_gpu(backend).await?;
    match gpu {
        Some(gpu) => {
            arguments.memory.apply(&mut options, GPU_KV);
            if backend == BackendChoice::Auto {
                options.unsteady = Unsteady::Cpu { seconds, told: tell_of_move };
            }
            load_on(gpu, opened, &options).await
        }
        None => {
            arguments.memory.apply(&mut options, CPU_KV);
            let engine = load_on_cpu(opened.model, backend, &options)?;
            report_warnings(&engine);
            Ok(engine)
        }
    }
}

/// Makes a model ready to run on the CPU, or on the interpreter if that was chosen. Weights are read when they are needed.
pub(crate) fn load_on_cpu(
    model: Model,
    backend: BackendChoice,
    options: &LoadOptions,
) -> Result<Engine, EngineError> {
    match backend {
        BackendChoice::Reference => Engine::load_reference(model, options),
        _ => Engine::load(model, options),
    }
}

/// Makes the towers of a model ready to run, and names the GPU that they run on. The weights of the text model are not read.
pub(crate) async fn load_towers(
    opened: Opened,
    backend: BackendChoice,
) -> Result<(Engine, Option<String>), Failure> {
    let options = LoadOptions::default();
    Ok(match choose_gpu(backend).await? {
        Some(gpu) => {
            let name = gpu.profile().name.clone();
            (Engine::load_towers_on(gpu, opened.model, &options)?, Some(name))
        }
        None => (load_on_cpu(opened.model, backend, &options)?, None),
    })
}

/// Says that a reply goes on on the CPU, on a line of its own: the reply may be in the middle of one.
fn tell_of_move(error: &EngineError) {
    output::note(format_args!("\nnote: {error}, so rullama goes on on the CPU (choose with --backend)"));
}

/// Seconds since this was first asked.
fn seconds() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_secs_f64()
}

/// Opens the GPU, or returns `None` to run on the CPU: if --backend says so, or if nobody chose and the GPU is missing,
/// emulated in software, wrong, or lost while it is tested. A note says why.
pub(crate) async fn choose_gpu(backend: BackendChoice) -> Result<Option<Gpu>, Failure> {
    if matches!(backend, BackendChoice::Cpu | BackendChoice::Reference) {
        return Ok(None);
    }
    let is_free = backend == BackendChoice::Auto;
    let use_cpu = |why: std::fmt::Arguments<'_>| {
        output::note(format_args!("note: {why}, so rullama uses the CPU (choose with --backend)"));
        Ok(None)
    };
    let gpu = match Gpu::open(&GpuOptions::default()).await {
        Err(GpuError::NoAdapter { .. }) if is_free => return use_cpu(format_args!("no GPU found")),
        Err(error @ GpuError::NoDevice { .. }) if is_free => return use_cpu(format_args!("{error}")),
        gpu => gpu?,
    };
    let name = &gpu.profile().name;
    if gpu.profile().software {
        if is_free {
            return use_cpu(format_args!("this GPU ({name}) is emulated in software"));
        }
        output::note(format_args!(
            "note: this GPU ({name}) is emulated in software and slow; --backend cpu is faster"
        ));
    }
    match gpu.check_kernels().await {
        Err(GpuError::Unreliable { .. }) if is_free => {
            use_cpu(format_args!("this GPU ({name}) gives wrong results"))
        }
        Err(GpuError::Lost { .. }) if is_free => {
            use_cpu(format_args!("this GPU ({name}) stopped working in the self-test"))
        }
        checked => Ok(checked.map(|()| Some(gpu))?),
    }
}

/// Opens the GPU for a command that can't do without it. `why` is the reason, for the hint.
pub(crate) async fn open_gpu(why: &str) -> Result<Gpu, Failure> {
    let failed = |error| Failure::from(error).hint(format!("{why}; install a Vulkan driver for your GPU"));
    Gpu::open(&GpuOptions::default()).await.map_err(failed)
}

impl MemoryArguments {
    /// Sets the options that the command line gives; without --kv, the format of caches that is best where the model runs.
    pub(crate) fn apply(&self, options: &mut LoadOptions, default_kv: CacheFormat) {
        const MIB: u64 = 1 << 20;
        options.weight_memory = self.weight_memory.saturating_mul(MIB);
        options.gpu_memory = self.gpu_memory.map(|memory| memory.saturating_mul(MIB));
        options.residency = self.residency;
        options.kv = self.kv.unwrap_or(default_kv);
    }
}

/// Uploads an opened model to the GPU with a progress bar, and notes anything unexpected.
pub(crate) async fn load_on(gpu: Gpu, opened: Opened, options: &LoadOptions) -> Result<Engine, Failure> {
    let bar = model::progress(&opened.name, 0);
    let mut progress = |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    };
    let engine = Engine::load_on(gpu, opened.model, options, &mut progress).await;
    bar.finish_and_clear();
    let engine = engine?;
    report_warnings(&engine);
    if let Some(model) = engine.gpu_model() {
        report_conversions(&model);
        let unasked = model.residency() != Residency::Gpu && options.residency.is_none();
        if unasked {
            output::note(format_args!(
                "note: the model does not fit in GPU memory, so {}",
                streamed(model.residency())
            ));
        }
        for fallback in model.fallbacks() {
            output::note(format_args!("note: {fallback}"));
        }
    }
    Ok(engine)
}

/// Prints warnings about the model's file.
fn report_warnings(engine: &Engine) {
    const MOST: usize = 8;
    let warnings = engine.warnings();
    for warning in warnings.iter().take(MOST) {
        output::note(format_args!("warning: {warning}"));
    }
    if warnings.len() > MOST {
        output::note(format_args!(
            "warning: {} more warnings; `rullama inspect` lists all of them",
            warnings.len() - MOST
        ));
    }
}

fn streamed(residency: Residency) -> &'static str {
    match residency {
        Residency::Gpu => "all weights stay on the GPU",
        Residency::Rows => "embedding tables stay in the file and are read row by row",
        Residency::Paged => "experts stay in the file and are read when they are needed",
    }
}

/// Notes which tensors were converted because the GPU has no kernels for their format.
fn report_conversions(model: &GpuModel) {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for conversion in model.conversions() {
        *counts.entry((conversion.from.name(), conversion.to.name())).or_default() += 1;
    }
    for ((from, to), count) in counts {
        let tensors = if count == 1 { "tensor" } else { "tensors" };
        output::note(format_args!("note: {count} {tensors} converted from {from} to {to} for the GPU"));
    }
}

/// The options of a reply: the model's defaults, changed by the command line.
pub(crate) fn options(opened: &Opened, arguments: &SamplingArguments) -> Result<GenerateOptions, Failure> {
    let mut options = GenerateOptions::default();
    if let Some(stored) = &opened.stored {
        let unusable = |error| {
            Failure::new(format!("the default parameters of `{}` can't be used", stored.name))
                .caused_by(error)
        };
        for warning in options.apply(&stored.params).map_err(unusable)? {
            output::note(format_args!("warning: in the default parameters of `{}`, {warning}", stored.name));
        }
    }
    options.apply(&given(arguments)).map_err(|error| Failure::from(error).usage())?;
    Ok(options)
}

/// The options of the command line, by Ollama's names.
fn given(arguments: &SamplingArguments) -> Map<String, Value> {
    let SamplingArguments {
        max_tokens,
        temperature,
        top_k,
        top_p,
        min_p,
        repeat_penalty,
        seed,
        stop,
        ignore_eos,
    } = arguments;
    let stop = (!stop.is_empty()).then_some(stop);
    let values = json!({
        "num_predict": max_tokens,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "repeat_penalty": repeat_penalty,
        "seed": seed,
        "stop": stop,
        "ignore_eos": ignore_eos,
    });
    match values {
        Value::Object(values) => values,
        _ => Map::new(),
    }
}

/// Says on standard error that a reply ended at a limit and not by itself.
pub(crate) fn note_if_cut(reason: Option<FinishReason>, usage: &Usage, limit: Option<u32>) {
    if reason != Some(FinishReason::Length) {
        return;
    }
    let tokens = usage.generated_tokens;
    if limit.is_some_and(|limit| tokens >= limit as usize) {
        output::note(format_args!("note: stopped after {tokens} tokens (--max-tokens)"));
    } else {
        output::note("note: stopped because the context is full; --context sets a larger one");
    }
}

/// A conversation whose slow steps show progress.
pub(crate) fn session(engine: &Engine) -> Result<Session, Failure> {
    let mut session = engine.session()?;
    if io::stderr().is_terminal() {
        let started = Cell::new(Instant::now());
        let bar = ProgressBar::hidden().with_style(ProgressStyle::default_spinner());
        session.watch(move |progress| {
            if progress.done == 1 {
                started.set(Instant::now());
            }
            // Steps that take less than a second need no progress.
            if progress.done == progress.all {
                bar.finish_and_clear();
                bar.set_draw_target(ProgressDrawTarget::hidden());
            } else if started.get().elapsed() > Duration::from_secs(1) {
                bar.set_draw_target(ProgressDrawTarget::stderr());
                bar.set_message(format!(
                    "{} tokens: operation {} of {}",
                    progress.rows, progress.done, progress.all
                ));
                bar.tick();
            }
        });
    }
    Ok(session)
}

/// Milliseconds since `start`.
pub(crate) fn milliseconds(since: Duration) -> f64 {
    (since.as_secs_f64() * 1e6).round() / 1e3
}

/// A clock that gives the seconds since it was made.
pub(crate) fn clock() -> impl Fn() -> f64 {
    let started = Instant::now();
    move || started.elapsed().as_secs_f64()
}

/// A clock that gives the time since the previous lap.
pub(crate) struct Laps(Instant);

impl Laps {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn lap(&mut self) -> Duration {
        let now = Instant::now();
        now - std::mem::replace(&mut self.0, now)
    }
}
