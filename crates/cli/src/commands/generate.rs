//! `rullama generate`: one reply, printed.

use std::{ffi::OsString, time::Duration};

use rullama_chat::{Delta, ReplyParts};
use rullama_engine::{ChatOptions, Engine, FinishReason, GenerateOptions, Usage};
use rullama_gemma::Medium;
use rullama_tokenizer::{EncodeOptions, SpecialOutput};
use serde_json::{Value, json};

use super::prompt;
use crate::{
    arguments::GenerateArguments,
    engine::{self, Laps, milliseconds},
    failure::Failure,
    media::{Attachments, Decoded},
    model, output,
    request::Request,
    writer::ReplyWriter,
};

pub(super) async fn run(arguments: &GenerateArguments) -> Result<(), Failure> {
    let mut clock = Laps::start();
    let named = Named::of(arguments)?;
    let attach = &arguments.attach;
    let attaches = !attach.image.is_empty() || !attach.audio.is_empty();
    if attaches && (arguments.raw || arguments.ids.is_some() || arguments.messages.is_some()) {
        return Err(Failure::new(
            "--image and --audio go with a prompt, not with --raw, --ids or --messages",
        )
        .hint("messages name their attachments themselves, in \"images\" and \"audio\"")
        .usage());
    }
    let opened = match &named.mistaken {
        Some(word) => model::open_demo_instead_of(word).await?,
        None => model::open_or_demo(named.model.as_deref()).await?,
    };
    let opened = opened.with_towers(attach.towers.projector.as_deref()).await?;
    let options = engine::options(&opened, &arguments.sampling)?;
    let input = Input::read(arguments, named.prompt, &opened)?;
    let engine = engine::load(opened, arguments.backend, &arguments.load, options.context).await?;
    let load = clock.lap();
    let mut encode = None;
    let limit = options.max_tokens;
    let result = match input {
        Input::Conversation(request, attachments) => {
            let media = attachments.encode(&engine, attach.towers.budget.unwrap_or_default()).await?;
            encode = (!media.is_empty()).then(|| clock.lap());
            let think = request.thinks(arguments.think);
            let options = ChatOptions { generate: options, think, tools: request.tools.clone(), media };
            chat(&engine, &request, &options, arguments.json).await?
        }
        Input::Raw(text) => {
            let ids = engine.tokenizer().encode(&text, EncodeOptions::PROMPT);
            continue_ids(&engine, &ids, &options, arguments.json).await?
        }
        Input::Ids(ids) => continue_ids(&engine, &ids, &options, arguments.json).await?,
    };
    if arguments.json {
        let mut value = result.json(load);
        if let Some(encode) = encode {
            value["timings"]["encode_ms"] = milliseconds(encode).into();
        }
        output::json(&value)?;
    } else {
        engine::note_if_cut(result.reason, &result.usage, limit);
    }
    Ok(())
}

/// The model and the prompt, sorted out from arguments and options.
struct Named {
    model: Option<OsString>,
    prompt: Option<String>,
    /// The prompt, if it is one word that may have been meant as the name of a model.
    mistaken: Option<String>,
}

impl Named {
    fn new(model: Option<OsString>, prompt: Option<String>) -> Self {
        Self { model, prompt, mistaken: None }
    }

    /// A single argument is the prompt if the model is an option, and the model if the prompt is an option. Otherwise it is
    /// the model if it names one (see [`model::names_a_model`]), or if it could and the prompt is piped in.
    fn of(arguments: &GenerateArguments) -> Result<Self, Failure> {
        let GenerateArguments { first, second, model, prompt, ids, messages, .. } = arguments;
        let twice = |what: &str| {
            Failure::new(format!("the {what} is given twice, as an argument and as an option"))
                .hint("leave one of them out")
                .usage()
        };
        let has_input = prompt.is_some() || ids.is_some() || messages.is_some();
        let text = |argument: &OsString| {
            let text = argument.to_str().map(str::to_owned);
            text.ok_or_else(|| Failure::new("the prompt is not UTF-8 text").usage())
        };
        match (first, second) {
            (Some(_), Some(_)) if model.is_some() => Err(twice("model")),
            (Some(_), Some(_)) if has_input => Err(twice("prompt")),
            (Some(first), None) if model.is_some() && has_input => {
                let given = first.to_string_lossy();
                Err(Failure::new(format!("unexpected argument `{given}`: model and prompt are both options"))
                    .hint("leave the argument out")
                    .usage())
            }
            (Some(first), second) if second.is_some() || has_input => {
                Ok(Self::new(Some(first.clone()), second.clone().or_else(|| prompt.clone())))
            }
            (Some(first), _) if model.is_some() => Ok(Self::new(model.clone(), Some(text(first)?))),
            (Some(first), _) if model::names_a_model(first) => Ok(Self::new(Some(first.clone()), None)),
            (Some(first), _) => match model::could_be_a_name(first) {
                true if prompt::is_piped() => Ok(Self::new(Some(first.clone()), None)),
                could_be => {
                    let prompt = text(first)?;
                    let mistaken = could_be.then(|| prompt.clone());
                    Ok(Self { model: None, prompt: Some(prompt), mistaken })
                }
            },
            (None, _) => Ok(Self::new(model.clone(), prompt.clone())),
        }
    }
}

/// What is continued or answered.
enum Input {
    Conversation(Request, Attachments),
    Raw(String),
    Ids(Vec<u32>),
}

impl Input {
    fn read(
        arguments: &GenerateArguments,
        prompt: Option<String>,
        opened: &model::Opened,
    ) -> Result<Self, Failure> {
        if let Some(ids) = &arguments.ids {
            return Ok(Self::Ids(ids.0.clone()));
        }
        let mut request = match &arguments.messages {
            Some(path) => Request::read(path)?,
            None => {
                let prompt = prompt.map_or_else(prompt::piped, |prompt| prompt::given(&prompt))?;
                if arguments.raw {
                    return Ok(Self::Raw(prompt));
                }
                Request::message(&prompt)
            }
        };
        if let Some(path) = &arguments.tools {
            request.read_tools(path)?;
        }
        let mut attachments = Attachments::of(&mut request.messages)?;
        let attach = &arguments.attach;
        if let Some(message) = request.messages.last_mut() {
            for (paths, medium) in [(&attach.image, Medium::Vision), (&attach.audio, Medium::Audio)] {
                for path in paths {
                    attachments.add(Decoded::read(path, medium)?, message);
                }
            }
        }
        attachments.check(&opened.model)?;
        request.prepend_defaults(opened)?;
        Ok(Self::Conversation(request, attachments))
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
    let mut writer = ReplyWriter::new();
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
    let mut writer = ReplyWriter::new();
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
