//! `rullama parity`: compares the GPU with another implementation.
//!
//! | file | idea |
//! |---|---|
//! | `compare` | two continuations of a prompt, and a verdict on their differences |
//! | `prompts` | the prompts to continue |
//! | `server` | continuations by Ollama and llama.cpp |

mod compare;
mod prompts;
mod server;

use indicatif::ProgressBar;
use rullama_engine::{Engine, GenerateOptions, LoadOptions, Sampler, SamplingOptions, Session};
use rullama_tokenizer::{EncodeOptions, SpecialOutput};
use serde_json::{Value, json};

use self::{
    compare::{Comparison, Forced, Said, Verdict, log_probabilities, top_two_margin},
    server::Server,
};
use crate::{
    arguments::{Against, ParityArguments},
    engine,
    failure::Failure,
    model, output,
};

pub(super) async fn run(arguments: &ParityArguments) -> Result<(), Failure> {
    let memory = arguments.memory.gpu_memory.is_some();
    compare_all(arguments).await.map_err(|failure| failure.of_comparing(memory))
}

async fn compare_all(arguments: &ParityArguments) -> Result<(), Failure> {
    let prompts = prompts::read(arguments.prompts.as_deref())?;
    let opened = model::open(&arguments.model).await?;
    let (name, stored) = (opened.name.clone(), opened.stored.is_some());
    let tokenizer = opened.tokenizer()?;
    let prompts: Vec<(String, Vec<u32>)> = prompts
        .into_iter()
        .map(|text| (text.clone(), tokenizer.encode(&text, EncodeOptions::PROMPT)))
        .collect();
    let longest = prompts.iter().map(|(_, ids)| ids.len()).max().unwrap_or(0);
    let needed = (longest as u32).saturating_add(arguments.max_tokens).saturating_add(1);
    let mut options = LoadOptions::default().context(needed);
    arguments.memory.apply(&mut options, engine::GPU_KV);
    // The CPU uses an f32 cache, unless --kv sets a format for both sides.
    let mut reference = options.clone();
    arguments.memory.apply(&mut reference, engine::CPU_KV);

    opened.check(options.context)?;
    // Servers are asked first: finding that there is none is faster than loading a model.
    let server = match &arguments.against {
        Against::Cpu => None,
        Against::Server(url) => {
            let own_name = stored.then_some(name.as_str());
            Some(Server::find(url, arguments.server_model.as_deref().or(own_name)).await?)
        }
    };
    let gpu = engine::open_gpu("parity needs a GPU").await?;
    let device = gpu.profile().name.clone();
    let ours = engine::load_on(gpu, opened, &options).await?;
    let mut parity = Parity {
        session: ours.session()?,
        engine: ours,
        max_tokens: arguments.max_tokens,
        tolerance: arguments.tolerance,
    };
    let mut reference = match &server {
        Some(server) => Reference::Server(server),
        None => {
            let opened = model::open(&arguments.model).await?;
            Reference::Cpu(Box::new(Engine::load_reference(opened.model, &reference)?.session()?))
        }
    };

    let bar = model::progress_of_steps("prompts", prompts.len() as u64);
    let mut comparisons = Vec::new();
    for (text, ids) in &prompts {
        comparisons.push(parity.compare(&mut reference, text, ids, &bar).await?);
        bar.inc(1);
    }
    bar.finish_and_clear();

    let report = Report { name, device, against: reference.describe(), arguments, comparisons };
    if arguments.json {
        output::json(&report.json())?;
    } else {
        report.print()?;
    }
    match report.count(Verdict::Different) {
        0 => Ok(()),
        count => Err(Failure::new(format!("{count} of {} continuations differ", report.comparisons.len()))
            .hint("test the GPU with `rullama doctor`, or try --kv f32, which rules out rounding in the key-value cache")),
    }
}

/// What the GPU is compared with.
enum Reference<'s> {
    Cpu(Box<Session>),
    Server(&'s Server),
}

impl Reference<'_> {
    fn describe(&self) -> String {
        match self {
            Self::Cpu(_) => "cpu".to_owned(),
            Self::Server(server) => server.to_string(),
        }
    }
}

/// The GPU's side.
struct Parity {
    engine: Engine,
    session: Session,
    max_tokens: u32,
    tolerance: f32,
}

impl Parity {
    /// Continues a prompt on both sides.
    async fn compare(
        &mut self,
        reference: &mut Reference<'_>,
        prompt: &str,
        ids: &[u32],
        bar: &ProgressBar,
    ) -> Result<Comparison, Failure> {
        let ours = self.generate(ids).await?;
        bar.tick();
        let (said, forced) = match reference {
            Reference::Cpu(session) => {
                let (tokens, forced) = self.beside(session, ids).await?;
                (tokens, Some(forced))
            }
            Reference::Server(server) => {
                let context = self.engine.context();
                let said = server.generate(prompt, ids, self.max_tokens, context).await?;
                let forced = match said.ids() {
                    Some(_) => Some(self.follow(ids, &said.tokens).await?),
                    None => None,
                };
                (said, forced)
            }
        };
        Ok(Comparison::new(&self.engine, (prompt, ids.len()), ours, said, forced, self.tolerance))
    }

    /// The GPU's greedy continuation, generated as for users.
    async fn generate(&mut self, ids: &[u32]) -> Result<Vec<Said>, Failure> {
        let options = GenerateOptions {
            sampling: SamplingOptions::GREEDY,
            max_tokens: Some(self.max_tokens),
            ..GenerateOptions::default()
        };
        let mut generation = self.session.generate(ids, &options, SpecialOutput::Hidden)?;
        let mut said = Vec::new();
        while let Some(token) = generation.next().await {
            let token = token?;
            said.push(Said { id: Some(token.sampled.id), text: token.text, top: Vec::new(), margin: None });
        }
        Ok(said)
    }

    /// Continues greedily on the CPU, and compares the logits of each step with those of the GPU after the same tokens.
    async fn beside(
        &mut self,
        reference: &mut Session,
        prompt: &[u32],
    ) -> Result<(compare::Continuation, Forced), Failure> {
        let tokenizer = self.engine.tokenizer();
        let suppressed = tokenizer.suppressed_tokens();
        let mut sampler =
            Sampler::new(&SamplingOptions::GREEDY, suppressed).map_err(rullama_engine::EngineError::from)?;
        let mut ids = prompt.to_vec();
        let mut continuation = compare::Continuation::default();
        let mut forced = Forced::new(self.tolerance);
        for _ in 0..self.max_tokens {
            let theirs = reference.next_logits(&ids).await?;
            let ours = self.session.next_logits(&ids).await?;
            let id = sampler.sample(theirs.last(), &ids).map_err(rullama_engine::EngineError::from)?.id;
            let margin = top_two_margin(theirs.last(), suppressed);
            let distance = compare::distance(ours.last(), theirs.last());
            forced.logits(distance, compare::likeliest(ours.last(), suppressed) == Some(id), margin);
            let text = String::from_utf8_lossy(&tokenizer.piece(id, SpecialOutput::Hidden)?).into_owned();
            continuation.tokens.push(Said { id: Some(id), text, top: Vec::new(), margin });
            ids.push(id);
            if tokenizer.is_end(id) {
                continuation.ended = true;
                break;
            }
        }
        continuation.text = tokenizer.decode(&ids[prompt.len()..], SpecialOutput::Hidden)?;
        Ok((continuation, forced))
    }

    /// Reads a server's tokens, and compares log-probabilities if the server returned any.
    async fn follow(&mut self, prompt: &[u32], tokens: &[Said]) -> Result<Forced, Failure> {
        let suppressed = self.engine.tokenizer().suppressed_tokens();
        let mut ids = prompt.to_vec();
        let mut forced = Forced::new(self.tolerance);
        for token in tokens {
            let ours = self.session.next_logits(&ids).await?;
            let probabilities = log_probabilities(ours.last());
            let known = token.top.iter().filter_map(|&(id, theirs)| {
                let ours = probabilities.get(id? as usize)?;
                Some(compare::distance(&[*ours], &[theirs]))
            });
            let distance = known.reduce(f32::max);
            forced.log_probabilities(
                distance,
                compare::likeliest(ours.last(), suppressed) == token.id,
                token.margin,
            );
            ids.extend(token.id);
        }
        Ok(forced)
    }
}

/// Everything that was compared.
struct Report<'a> {
    name: String,
    device: String,
    against: String,
    arguments: &'a ParityArguments,
    comparisons: Vec<Comparison>,
}

impl Report<'_> {
    fn count(&self, verdict: Verdict) -> usize {
        self.comparisons.iter().filter(|comparison| comparison.verdict == verdict).count()
    }

    fn by_tokens(&self) -> bool {
        self.comparisons.iter().all(|comparison| comparison.by_tokens)
    }

    fn json(&self) -> Value {
        json!({
            "model": self.name,
            "device": self.device,
            "against": self.against,
            "compared": if self.by_tokens() { "tokens" } else { "text" },
            // As the user wrote it: converting the f32 to f64 would add digits.
            "tolerance": self.arguments.tolerance.to_string().parse::<f64>().ok(),
            "verdict": self.comparisons.iter().map(|comparison| comparison.verdict).max().map(Verdict::as_str),
            "prompts": self.comparisons.iter().map(Comparison::json).collect::<Vec<_>>(),
        })
    }

    fn print(&self) -> Result<(), Failure> {
        let columns = ["PROMPT", "TOKENS", "DISTANCE", "VERDICT", "FIRST DIFFERENCE"];
        let mut rows = vec![columns.map(String::from).to_vec()];
        rows.extend(self.comparisons.iter().map(Comparison::row));
        output::table(&rows)?;
        output::line("")?;
        let all = self.comparisons.len();
        let (equal, within) = (self.count(Verdict::Equal), self.count(Verdict::WithinMargin));
        output::line(&format!(
            "{} on {} against {}: {equal} of {all} equal, {within} equal within a margin of {}, {} different",
            self.name,
            self.device,
            self.against,
            self.arguments.tolerance,
            all - equal - within
        ))?;
        if !self.by_tokens() {
            output::line("only the text was compared, because the server returns neither tokens nor logits")?;
        }
        Ok(())
    }
}
