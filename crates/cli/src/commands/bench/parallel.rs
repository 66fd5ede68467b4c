//! The speed of several conversations that are decoded together: on the GPU, one step has a row for each, so the weights are
//! read once. The CPU computes their steps one after another.

use std::time::Instant;

use futures_util::future::join_all;
use rullama_engine::{Engine, Generation, Session};
use rullama_tokenizer::SpecialOutput;
use serde_json::{Value, json};

use super::{ended_early, greedy};
use crate::{failure::Failure, output};

/// Tokens of each conversation before the clock starts: by then all of them are decoded together.
const BEFORE: u32 = 8;

/// Tokens that each conversation could still get after the clock stops, so that none is left out of the last steps.
const AFTER: u32 = 16;

/// Tokens of context that a conversation needs for this many generated ones.
pub(super) fn context(generate: u32) -> u32 {
    generate.saturating_add(BEFORE + AFTER + 2)
}

/// The speed of some number of conversations.
pub(super) struct Parallel {
    conversations: u32,
    /// Tokens per second, of all of them together.
    rate: f64,
}

impl Parallel {
    /// Measures once, after a run that compiles kernels and does not count.
    pub(super) async fn measure(engine: &Engine, conversations: u32, generate: u32) -> Result<Self, Failure> {
        let mut sessions = Vec::new();
        for _ in 0..conversations {
            sessions.push(engine.session()?);
        }
        run(&mut sessions, generate.min(BEFORE)).await?;
        let seconds = run(&mut sessions, generate).await?;
        let tokens = f64::from(conversations) * f64::from(generate);
        Ok(Self { conversations, rate: tokens / seconds })
    }

    pub(super) fn json(&self) -> Value {
        json!({ "conversations": self.conversations, "generate_tps": self.rate })
    }

    /// The table of all that was measured.
    pub(super) fn print(all: &[Self]) -> Result<(), Failure> {
        let Some(one) = all.iter().find(|one| one.conversations == 1).or(all.first()) else { return Ok(()) };
        let mut rows = vec![["CONVERSATIONS", "GENERATE", "OF ONE"].map(str::to_owned).to_vec()];
        for Self { conversations, rate } in all {
            let times = rate / one.rate * f64::from(one.conversations);
            rows.push(vec![conversations.to_string(), format!("{rate:.1} tok/s"), format!("{times:.2} ×")]);
        }
        output::line("")?;
        output::table(&rows)?;
        Ok(())
    }
}

/// Seconds in which each of these conversations gets `generate` tokens, all at the same time.
async fn run(sessions: &mut [Session], generate: u32) -> Result<f64, Failure> {
    let mut generations = Vec::new();
    for session in sessions {
        let prompt = [session.engine().tokenizer().bos()];
        let options = greedy(BEFORE + generate + AFTER);
        generations.push(session.generate(&prompt, &options, SpecialOutput::Hidden)?);
    }
    take(&mut generations, BEFORE).await?;
    let start = Instant::now();
    take(&mut generations, generate).await?;
    Ok(start.elapsed().as_secs_f64())
}

async fn take(generations: &mut [Generation<'_>], count: u32) -> Result<(), Failure> {
    let each = generations.iter_mut().map(|generation| async move {
        for found in 0..count {
            match generation.next().await {
                Some(token) => drop(token?),
                None => return Err(ended_early(found, count)),
            }
        }
        Ok(())
    });
    join_all(each).await.into_iter().collect()
}
