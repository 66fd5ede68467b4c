//! `rullama generate`.

use std::time::Duration;

use rullama_chat::{Delta, ReplyParts};
use rullama_engine::{ChatOptions, Engine, FinishReason, GenerateOptions, Usage};
use rullama_tokenizer::{EncodeOptions, SpecialOutput};
use serde_json::{Value, json};

use crate::{
    arguments::GenerateArguments,
    engine::{self, Laps, milliseconds},
    failure::Failure,
    model, output,
    request::Request,
    writer::TerminalWriter,
};

pub(super) async fn run(arguments: &GenerateArguments) -> Result<(), Failure> {
    let mut clock = Laps::start();
    let opened = model::open_or_demo(arguments.model.as_deref()).await?;
    let options = engine::options(&opened, &arguments.sampling)?;
    let input = Input::read(arguments, &opened)?;
    let engine = engine::load(opened, arguments.backend, &arguments.load, options.context).await?;
    let load = clock.lap();
    let result = match input {
        Input::Conversation(request) => {
            let think = request.thinks(arguments.think);
            let options = ChatOptions { generate: options, think, tools: request.tools.clone() };
            chat(&engine, &request, &options, arguments.json).await?
        }
        Input::Raw(text) => {
            let ids = engine.tokenizer().encode(&text, EncodeOptions::PROMPT);
            continue_ids(&engine, &ids, &options, arguments.json).await?
        }
        Input::Ids(ids) => continue_ids(&engine, &ids, &options, arguments.json).await?,
    };
    if arguments.json {
        output::json(&result.json(load))?;
    }
    Ok(())
}

/// What is continued or answered.
enum Input {
    Conversation(Request),
    Raw(String),
    Ids(Vec<u32>),
}

impl Input {
    fn read(arguments: &GenerateArguments, opened: &model::Opened) -> Result<Self, Failure> {
        if let Some(ids) = &arguments.ids {
            return Ok(Self::Ids(ids.0.clone()));
        }
        let mut request = match (&arguments.prompt, &arguments.messages) {
            (Some(prompt), _) if arguments.raw => return Ok(Self::Raw(prompt.clone())),
            (Some(prompt), _) => Request::message(prompt),
            (None, Some(path)) => Request::read(path)?,
            (None, None) => unreachable!("one of them is required"),
        };
        if let Some(path) = &arguments.tools {
            request.read_tools(path)?;
        }
        request.prepend_defaults(opened)?;
        Ok(Self::Conversation(request))
    }
}

/// A complete reply.
struct Outcome {
    ids: Vec<u32>,
    parts: ReplyParts,
    usage: Usage,
    reason: Option<FinishReason>,
    seed: u64,
    prompt: Duration,
    generate: Duration,
}

impl Outcome {
    fn json(&self, load: Duration) -> Value {
        let mut value = json!({
            "ids": self.ids,
            "text": self.parts.answer,
            "prompt_tokens": self.usage.prompt_tokens,
            "finish_reason": self.reason.map(FinishReason::as_str),
            "seed": self.seed,
            "timings": {
                "load_ms": milliseconds(load),
                "prompt_ms": milliseconds(self.prompt),
                "generate_ms": milliseconds(self.generate),
            },
        });
        if !self.parts.thought.is_empty() {
            value["thinking"] = self.parts.thought.as_str().into();
        }
        if !self.parts.calls.is_empty() {
            value["tool_calls"] = json!(self.parts.calls);
        }
        value
    }
}

/// Answers a conversation.
async fn chat(
    engine: &Engine,
    request: &Request,
    options: &ChatOptions,
    quiet: bool,
) -> Result<Outcome, Failure> {
    let mut session = engine::session(engine)?;
    let mut clock = Laps::start();
    let mut reply = session.chat(&request.messages, options)?;
    reply.read_prompt().await?;
    let prompt = clock.lap();
    let mut writer = TerminalWriter::new();
    while let Some(delta) = reply.next().await {
        let delta = delta?;
        if !quiet {
            writer.delta(&delta)?;
        }
    }
    if !quiet {
        writer.end()?;
    }
    Ok(Outcome {
        ids: reply.ids(),
        parts: reply.parts().clone(),
        usage: reply.usage(),
        reason: reply.finish_reason(),
        seed: reply.seed(),
        prompt,
        generate: clock.lap(),
    })
}

/// Continues tokens as they are.
async fn continue_ids(
    engine: &Engine,
    ids: &[u32],
    options: &GenerateOptions,
    quiet: bool,
) -> Result<Outcome, Failure> {
    let mut session = engine::session(engine)?;
    let mut clock = Laps::start();
    let mut generation = session.generate(ids, options, SpecialOutput::Hidden)?;
    generation.read_prompt().await?;
    let prompt = clock.lap();
    let mut parts = ReplyParts::default();
    let mut ids = Vec::new();
    let mut writer = TerminalWriter::new();
    while let Some(token) = generation.next().await {
        let token = token?;
        ids.push(token.sampled.id);
        let delta = Delta::Answer(token.text);
        if !quiet {
            writer.delta(&delta)?;
        }
        parts.push(delta);
    }
    if !quiet {
        writer.end()?;
    }
    Ok(Outcome {
        ids,
        parts,
        usage: generation.usage(),
        reason: generation.finish_reason(),
        seed: generation.seed(),
        prompt,
        generate: clock.lap(),
    })
}
