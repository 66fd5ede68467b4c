//! `rullama bench`: how fast a model runs, in the manner of llama-bench.
//!
//! It measures the replies of a session, as users get them, with several steps in flight on the GPU.

mod encoding;
mod parallel;
mod profile;
mod statistics;

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use rullama_engine::{Engine, EngineError, GenerateOptions, LoadOptions, SamplingOptions, Session};
use rullama_gemma::Medium;
use rullama_gpu::measure_bandwidth;
use rullama_tokenizer::{SpecialOutput, TokenKind, Tokenizer};
use serde_json::{Value, json};

use self::{
    encoding::{Encoding, Subject},
    parallel::Parallel,
    profile::Profile,
    statistics::Statistics,
};
use crate::{
    arguments::{BackendChoice, BenchArguments},
    engine::{self, Laps, milliseconds},
    failure::Failure,
    model::{self, Opened},
    output,
};

/// The seed of the random tokens. Always the same, so that runs can be compared.
const SEED: u64 = 0x72756c6c616d61;

pub(super) async fn run(arguments: &BenchArguments) -> Result<(), Failure> {
    let (context, memory) = (arguments.context.is_some(), arguments.memory.gpu_memory.is_some());
    measure_all(arguments).await.map_err(|failure| failure.of_measuring(context, memory))
}

async fn measure_all(arguments: &BenchArguments) -> Result<(), Failure> {
    if arguments.generate == 0 && !arguments.parallel.is_empty() {
        let failure = Failure::new("--parallel measures generated tokens, and --generate is 0");
        return Err(failure.hint("set --generate to a number above 0").usage());
    }
    let subjects = Subject::all(arguments);
    let has_text = arguments.prompt > 0 || arguments.generate > 0;
    if !has_text && subjects.is_empty() {
        let failure = Failure::new("there is nothing to measure with --prompt 0 and --generate 0");
        return Err(failure.hint("set one of them to a number above 0").usage());
    }
    let mut setting = if has_text { load(arguments).await? } else { load_towers(arguments).await? };
    let mut results = Vec::new();
    if has_text {
        let mut session = setting.engine.session()?;
        for &depth in &arguments.depth {
            results.push(setting.measure(&mut session, arguments, depth).await?);
        }
    }
    let mut encodings = Vec::new();
    for subject in subjects {
        encodings.push(subject.measure(&setting, arguments.repeat).await?);
    }
    let mut together = Vec::new();
    for &conversations in &arguments.parallel {
        setting.progress.set_message(format!("{conversations} conversations together"));
        together.push(Parallel::measure(&setting.engine, conversations, arguments.generate).await?);
    }
    let mut profiles = Vec::new();
    if arguments.profile {
        for &depth in &arguments.depth {
            profiles.extend(setting.profile(arguments, depth).await?);
        }
    }
    setting.progress.finish_and_clear();
    if arguments.json {
        let mut json = setting.json(arguments, &results, &profiles);
        if !together.is_empty() {
            json["parallel"] = together.iter().map(Parallel::json).collect();
        }
        for (name, value) in encodings.iter().map(Encoding::json) {
            json[name] = value;
        }
        return Ok(output::json(&json)?);
    }
    setting.print(arguments, &results)?;
    Encoding::print(&encodings)?;
    Parallel::print(&together)?;
    profiles.iter().try_for_each(Profile::print)
}

/// The loaded model and the facts about it.
struct Setting {
    engine: Engine,
    name: String,
    device: String,
    /// `gpu`, `cpu` or `reference`.
    backend: &'static str,
    load: Duration,
    bandwidth: Option<f64>,
    tokens: RandomTokens,
    progress: ProgressBar,
}

/// The speed at one depth.
struct Measured {
    depth: u32,
    prompt: Option<Statistics>,
    generate: Option<Statistics>,
    first_token: Option<Duration>,
    dispatches: Option<usize>,
    weight_bytes: Option<u64>,
    share: Option<f64>,
}

async fn open(arguments: &BenchArguments) -> Result<Opened, Failure> {
    let opened = model::open_or_demo(arguments.model.as_deref()).await?;
    let projector = arguments.towers.projector.as_deref();
    let opened = opened.with_towers(projector).await?;
    let reads = Medium::of(&opened.model);
    let wanted = [(arguments.image.is_some(), Medium::Vision), (arguments.audio.is_some(), Medium::Audio)];
    match wanted.into_iter().find(|(wanted, medium)| *wanted && !reads.contains(medium)) {
        Some((_, medium)) => Err(EngineError::NoMedium { medium }.into()),
        None => Ok(opened),
    }
}

/// Makes the towers alone ready: the text is not measured.
async fn load_towers(arguments: &BenchArguments) -> Result<Setting, Failure> {
    if arguments.profile {
        let failure = Failure::new("--profile times the kernels of the text model, which is not measured");
        return Err(failure.hint("add --prompt or --generate").usage());
    }
    let mut clock = Laps::start();
    let opened = open(arguments).await?;
    let name = opened.name.clone();
    let (engine, gpu) = engine::load_towers(opened, arguments.backend).await?;
    let load = clock.lap();
    let (device, backend) = match gpu {
        Some(name) => (name, "gpu"),
        None => without_gpu(arguments.backend),
    };
    let (tokens, progress) = (RandomTokens::new(engine.tokenizer()), spinner());
    Ok(Setting { engine, name, device, backend, load, bandwidth: None, tokens, progress })
}

/// The device and the backend where there is no GPU.
fn without_gpu(backend: BackendChoice) -> (String, &'static str) {
    ("CPU".to_owned(), if backend == BackendChoice::Reference { "reference" } else { "cpu" })
}

async fn load(arguments: &BenchArguments) -> Result<Setting, Failure> {
    let deepest = arguments.depth.iter().copied().max().unwrap_or(0);
    // The last generated token is not read, but generation needs one token to start from.
    let needed = deepest.saturating_add(arguments.prompt.max(arguments.generate)).saturating_add(1);
    let needed = match arguments.parallel[..] {
        [] => needed,
        _ => needed.max(parallel::context(arguments.generate)),
    };
    let mut clock = Laps::start();
    let opened = open(arguments).await?;
    let name = opened.name.clone();
    let mut options = LoadOptions::default().context(arguments.context.unwrap_or(needed));
    opened.check(options.context)?;
    // Checked before the tokens are made, because there may be billions.
    let tokens = deepest as usize + arguments.prompt.max(1) as usize;
    if let Some(context) = arguments.context.map(|context| context as usize).filter(|&most| tokens >= most) {
        return Err(EngineError::ContextOverflow { tokens, fits: context - 1, context }.into());
    }
    let gpu = engine::choose_gpu(arguments.backend).await?;
    let (mut load, mut bandwidth) = (Duration::ZERO, None);
    let (engine, (device, backend)) = match gpu {
        None => {
            if arguments.profile {
                let message = "--profile works only on the GPU";
                return Err(Failure::new(message).hint("leave out --profile or --backend cpu").usage());
            }
            arguments.memory.apply(&mut options, engine::CPU_KV);
            let engine = engine::load_on_cpu(opened.model, arguments.backend, &options)?;
            (engine, without_gpu(arguments.backend))
        }
        Some(gpu) => {
            let profile = gpu.profile().clone();
            if arguments.profile && !profile.timestamps {
                let message = format!("the GPU `{}` can't time single kernels", profile.name);
                return Err(Failure::new(message).hint("leave out --profile"));
            }
            arguments.memory.apply(&mut options, engine::GPU_KV);
            options.conversations = arguments.parallel.iter().copied().max();
            // Before the weights are loaded, so that the buffer for this needs no memory beside them.
            load += clock.lap();
            let progress = spinner();
            progress.set_message("measuring memory bandwidth");
            bandwidth = Some(measure_bandwidth(&gpu, &engine::clock()).await?);
            progress.finish_and_clear();
            clock.lap();
            (engine::load_on(gpu, opened, &options).await?, (profile.name, "gpu"))
        }
    };
    load += clock.lap();
    let (tokens, progress) = (RandomTokens::new(engine.tokenizer()), spinner());
    Ok(Setting { engine, name, device, backend, load, bandwidth, tokens, progress })
}

/// Shows what is being measured, on a terminal only.
fn spinner() -> ProgressBar {
    use std::io::IsTerminal as _;
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_style(ProgressStyle::default_spinner());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Options for a greedy reply of exactly this many tokens.
fn greedy(tokens: u32) -> GenerateOptions {
    GenerateOptions {
        sampling: SamplingOptions::GREEDY,
        max_tokens: Some(tokens),
        ignore_end: true,
        ..GenerateOptions::default()
    }
}

impl Setting {
    async fn measure(
        &mut self,
        session: &mut Session,
        arguments: &BenchArguments,
        depth: u32,
    ) -> Result<Measured, Failure> {
        let before = self.tokens.take(depth);
        let (mut prompt_times, mut generate_times) = (Vec::new(), Vec::new());
        // The first repetition compiles kernels and warms caches up; it does not count.
        for repetition in 0..=arguments.repeat {
            let which = match repetition {
                0 => "warm-up".to_owned(),
                _ => format!("{repetition} of {}", arguments.repeat),
            };
            if arguments.prompt > 0 {
                self.progress.set_message(format!("prompt of {} at {depth}: {which}", arguments.prompt));
                let prompt = [&before[..], &self.tokens.take(arguments.prompt)].concat();
                go_to(session, &before).await?;
                prompt_times.push(time(session, &prompt, 1).await?);
            }
            if arguments.generate > 0 {
                self.progress.set_message(format!("{} tokens at {depth}: {which}", arguments.generate));
                // One token to start from, so that there are as many one-row steps as generated tokens.
                let prompt = [&before[..], &[self.engine.tokenizer().bos()]].concat();
                go_to(session, &before).await?;
                generate_times.push(time(session, &prompt, arguments.generate).await?);
            }
        }
        let counted = |times: Vec<f64>| (times.len() > 1).then(|| times[1..].to_vec());
        let (prompt_times, generate_times) = (counted(prompt_times), counted(generate_times));
        let rates = |tokens: u32, times: &Option<Vec<f64>>| {
            let times = times.as_ref()?;
            Some(Statistics::of(times.iter().map(|seconds| f64::from(tokens) / seconds)))
        };
        let generate = rates(arguments.generate, &generate_times);
        let report = match self.engine.gpu_model() {
            Some(model) => Some(model.report(1, depth)?),
            None => None,
        };
        let weight_bytes = report.as_ref().map(|report| report.weight_bytes());
        let share = || Some(weight_bytes? as f64 * generate?.mean / self.bandwidth?);
        Ok(Measured {
            depth,
            prompt: rates(arguments.prompt, &prompt_times),
            first_token: prompt_times
                .map(|times| Duration::from_secs_f64(Statistics::of(times.into_iter()).mean)),
            share: share(),
            generate,
            dispatches: report.map(|report| report.dispatches.len()),
            weight_bytes,
        })
    }

    /// Times the kernels of decoding, and of a chunk of a prompt.
    async fn profile(&mut self, arguments: &BenchArguments, depth: u32) -> Result<Vec<Profile>, Failure> {
        let Some(model) = self.engine.gpu_model() else { return Ok(Vec::new()) };
        self.progress.set_message(format!("timing kernels at {depth}"));
        let mut state = model.state()?;
        for ids in self.tokens.take(depth).chunks(state.rows_at_once()) {
            state.step(ids).await?;
        }
        let chunk = arguments.prompt.min(state.rows_at_once() as u32);
        let mut profiles = Vec::new();
        for rows in [u32::from(arguments.generate > 0), chunk].into_iter().filter(|&rows| rows > 0) {
            profiles.push(Profile::measure(&mut state, depth, rows, arguments.repeat).await?);
        }
        Ok(profiles)
    }

    fn json(&self, arguments: &BenchArguments, results: &[Measured], profiles: &[Profile]) -> Value {
        let result = |measured: &Measured| {
            json!({
                "depth": measured.depth,
                "prompt_tokens": arguments.prompt,
                "prompt_tps": measured.prompt,
                "generate_tokens": arguments.generate,
                "generate_tps": measured.generate,
                "first_token_ms": measured.first_token.map(milliseconds),
                "dispatches_per_token": measured.dispatches,
                "weight_bytes_per_token": measured.weight_bytes,
                "bandwidth_share": measured.share,
            })
        };
        let mut value = json!({
            "model": self.name,
            "backend": self.backend,
            "device": self.device,
            "load_ms": milliseconds(self.load),
            "bandwidth_bytes_per_s": self.bandwidth,
            "results": results.iter().map(result).collect::<Vec<_>>(),
        });
        if arguments.profile {
            value["profile"] = profiles.iter().map(Profile::json).collect();
        }
        value
    }

    fn print(&self, arguments: &BenchArguments, results: &[Measured]) -> Result<(), Failure> {
        let mut head = vec![
            vec!["model".to_owned(), self.name.clone()],
            vec!["device".to_owned(), format!("{} ({})", self.device, self.backend)],
            vec!["load".to_owned(), format!("{:.0} ms", milliseconds(self.load))],
        ];
        if let Some(bandwidth) = self.bandwidth {
            head.push(vec!["bandwidth".to_owned(), format!("{:.1} GB/s", bandwidth / 1e9)]);
        }
        output::table(&head)?;
        if results.is_empty() {
            return Ok(());
        }
        output::line("")?;
        let prompt = format!("PROMPT {}", arguments.prompt);
        let generate = format!("GENERATE {}", arguments.generate);
        let columns =
            ["DEPTH", &prompt, &generate, "FIRST TOKEN", "DISPATCHES", "WEIGHTS READ", "OF BANDWIDTH"];
        let mut rows = vec![columns.map(String::from).to_vec()];
        let or_nothing = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        for measured in results {
            let rate = |rate: Option<Statistics>| or_nothing(rate.map(|rate| format!("{rate} tok/s")));
            let first = measured.first_token.map(|time| format!("{:.1} ms", milliseconds(time)));
            rows.push(vec![
                measured.depth.to_string(),
                rate(measured.prompt),
                rate(measured.generate),
                or_nothing(first),
                or_nothing(measured.dispatches.map(|count| count.to_string())),
                or_nothing(measured.weight_bytes.map(output::size)),
                or_nothing(measured.share.map(|share| format!("{:.1} %", 100.0 * share))),
            ]);
        }
        Ok(output::table(&rows)?)
    }
}

/// Sets the context of a session to these tokens.
async fn go_to(session: &mut Session, ids: &[u32]) -> Result<(), Failure> {
    if ids.is_empty() {
        session.clear();
        return Ok(());
    }
    let options = greedy(0);
    Ok(session.generate(ids, &options, SpecialOutput::Hidden)?.read_prompt().await?)
}

/// Seconds from the question to the last of `tokens` tokens.
async fn time(session: &mut Session, prompt: &[u32], tokens: u32) -> Result<f64, Failure> {
    let options = greedy(tokens);
    let started = Instant::now();
    let mut generation = session.generate(prompt, &options, SpecialOutput::Hidden)?;
    while let Some(token) = generation.next().await {
        token?;
    }
    Ok(started.elapsed().as_secs_f64())
}

/// Tokens of ordinary text in random order.
struct RandomTokens {
    choices: Vec<u32>,
    state: u64,
}

impl RandomTokens {
    fn new(tokenizer: &Tokenizer) -> Self {
        let all = 0..tokenizer.len() as u32;
        let mut choices: Vec<u32> =
            all.filter(|&id| tokenizer.token_kind(id) == Some(TokenKind::Normal)).collect();
        if choices.is_empty() {
            choices.push(tokenizer.bos());
        }
        Self { choices, state: SEED }
    }

    fn take(&mut self, count: u32) -> Vec<u32> {
        let choices = self.choices.len() as u64;
        let mut token = || {
            let index = self.next() % choices;
            self.choices[index as usize]
        };
        (0..count).map(|_| token()).collect()
    }

    /// The next pseudo-random number (SplitMix64).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}
