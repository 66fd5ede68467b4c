//! A conversation and its replies.
//!
//! A reply borrows its session, and no JavaScript object can hold a borrow. So a call takes the session out of its slot,
//! writes the whole reply, and puts the session back. It reports events to a function that the caller passes.

use std::{cell::RefCell, rc::Rc};

use js_sys::{Function, Promise};
use rullama_chat::{Delta, ReplyParts};
use rullama_engine::{Engine, FinishReason, Generation, Reply, Sampled, Session, Usage};
use rullama_tokenizer::{SpecialOutput, Tokenizer};
use serde_json::{Map, Value, json};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::{
    Cancel, WebAttachment,
    attachment::media,
    error::{Failure, Thrown, plain},
    gate::Gate,
    host::milliseconds,
    options,
};

/// A conversation, with the key-value cache of what the model has read. It writes one reply at a time.
#[wasm_bindgen]
pub struct WebSession {
    slot: Rc<RefCell<Option<Session>>>,
    thrown: Thrown,
    gate: Gate,
}

impl WebSession {
    pub(crate) fn new(session: Session, thrown: Thrown, gate: Gate) -> Self {
        Self { slot: Rc::new(RefCell::new(Some(session))), thrown, gate }
    }

    /// Runs `work` on the session and gives its result as JSON.
    fn run(
        &self,
        cancel: &Cancel,
        work: impl AsyncFnOnce(&mut Session, &Thrown) -> Result<Value, Failure> + 'static,
    ) -> Promise {
        let (slot, thrown, cancel) = (self.slot.clone(), self.thrown.clone(), cancel.clone());
        future_to_promise(async move {
            let mut session = slot.borrow_mut().take().ok_or_else(busy)?;
            let result = cancel.unless(work(&mut session, &thrown)).await;
            *slot.borrow_mut() = Some(session);
            Ok(result?.to_string().into())
        })
    }
}

#[wasm_bindgen]
impl WebSession {
    /// Answers a whole conversation. The prefix that it shares with the previous prompt is not read again.
    ///
    /// `on_event` is called with `started` when the prompt has been read, then with each delta. The promise gives the whole
    /// reply. All are JSON. The option `begun` has the tokens of a reply that another engine began with these options and its
    /// seed: this one writes the rest, and `on_event` hears of the rest only. `attachments` are what the messages name.
    #[wasm_bindgen(unchecked_return_type = "Promise<string>")]
    pub fn chat(
        &self,
        messages: String,
        attachments: Vec<WebAttachment>,
        options: String,
        on_event: Function,
        cancel: &Cancel,
    ) -> Promise {
        let gate = self.gate.clone();
        self.run(cancel, async move |session, thrown| {
            let (messages, mut asked) = (options::messages(&messages)?, options::reply_options(&options)?);
            asked.options.media = media(attachments);
            let engine = session.engine().clone();
            let mut reply = session.chat(&messages, &asked.options).map_err(|error| thrown.failure(error))?;
            reply.resume(&asked.begun);
            finish(&engine, reply, asked.begun.len(), &on_event, &gate, thrown).await
        })
    }

    /// Adds a message to the conversation and answers it. The answer becomes part of the conversation, even if it is cancelled
    /// half-way.
    #[wasm_bindgen(unchecked_return_type = "Promise<string>")]
    pub fn send(
        &self,
        message: String,
        attachments: Vec<WebAttachment>,
        options: String,
        on_event: Function,
        cancel: &Cancel,
    ) -> Promise {
        let gate = self.gate.clone();
        self.run(cancel, async move |session, thrown| {
            let mut messages = options::messages(&format!("[{message}]"))?;
            let mut asked = options::reply_options(&options)?;
            asked.options.media = media(attachments);
            let Some(message) = messages.pop().filter(|_| messages.is_empty()) else {
                return Err(plain("chat.wrong_type", "`send` takes one message, not a list"));
            };
            let engine = session.engine().clone();
            let mut reply = session.send(message, &asked.options).map_err(|error| thrown.failure(error))?;
            reply.resume(&asked.begun);
            finish(&engine, reply, asked.begun.len(), &on_event, &gate, thrown).await
        })
    }

    /// Continues token ids, without a chat template.
    #[wasm_bindgen(unchecked_return_type = "Promise<string>")]
    pub fn generate(&self, ids: Vec<u32>, options: String, on_event: Function, cancel: &Cancel) -> Promise {
        let gate = self.gate.clone();
        self.run(cancel, async move |session, thrown| {
            let asked = options::generate_options(&options)?;
            let engine = session.engine().clone();
            let failed = |error| thrown.failure(error);
            gate.pass().await;
            let started_at = milliseconds();
            let mut generation =
                session.generate(&ids, &asked.options, SpecialOutput::Hidden).map_err(failed)?;
            generation.resume(&asked.begun);
            generation.read_prompt().await.map_err(failed)?;
            let read = milliseconds();
            tell(&on_event, &started(generation.seed(), generation.usage(), read - started_at))?;
            let (mut parts, mut held) = (ReplyParts::default(), 0.0);
            while let Some(token) = generation.next().await {
                held += gate.pass().await;
                let token = token.map_err(failed)?;
                if generation.tokens().len() <= asked.begun.len() {
                    parts.push(Delta::Answer(token.text));
                    continue;
                }
                let mut delta = Map::from_iter([("text".to_owned(), token.text.as_str().into())]);
                describe(&mut delta, std::slice::from_ref(&token.sampled), engine.tokenizer());
                tell(&on_event, &Value::Object(delta))?;
                parts.push(Delta::Answer(token.text));
            }
            let outcome = Outcome {
                engine: &engine,
                generation: &generation,
                parts: &parts,
                prompt: read - started_at,
                generate: milliseconds() - read - held,
            };
            Ok(outcome.json())
        })
    }

    /// The messages that `send` added and the replies to them, as JSON.
    pub fn messages(&self) -> Result<String, Failure> {
        let slot = self.slot.borrow();
        let session = slot.as_ref().ok_or_else(busy)?;
        serde_json::to_string(session.messages()).map_err(|error| plain("internal", &error.to_string()))
    }

    /// Gives an empty session the messages of another.
    pub fn restore(&self, messages: &str) -> Result<(), Failure> {
        let messages = options::messages(messages)?;
        self.slot.borrow_mut().as_mut().ok_or_else(busy)?.restore(messages);
        Ok(())
    }

    /// Tokens in the key-value cache.
    pub fn length(&self) -> Result<u32, Failure> {
        let slot = self.slot.borrow();
        Ok(slot.as_ref().ok_or_else(busy)?.history().len() as u32)
    }

    /// Removes all messages and empties the key-value cache.
    pub fn clear(&self) -> Result<(), Failure> {
        self.slot.borrow_mut().as_mut().ok_or_else(busy)?.clear();
        Ok(())
    }
}

fn busy() -> Failure {
    plain(
        "session.busy",
        "this session is already writing a reply; wait for it to end, or use another session",
    )
}

/// Writes a reply and reports its events, but not those of the first `begun` tokens.
async fn finish(
    engine: &Engine,
    mut reply: Reply<'_>,
    begun: usize,
    on_event: &Function,
    gate: &Gate,
    thrown: &Thrown,
) -> Result<Value, Failure> {
    let failed = |error| thrown.failure(error);
    gate.pass().await;
    let started_at = milliseconds();
    reply.read_prompt().await.map_err(failed)?;
    let read = milliseconds();
    tell(on_event, &started(reply.seed(), reply.usage(), read - started_at))?;
    let (mut told, mut held) = (0, 0.0);
    while let Some(delta) = reply.next().await {
        held += gate.pass().await;
        if reply.tokens().len() <= begun && delta.is_ok() {
            told = reply.tokens().len();
            continue;
        }
        let mut value = match delta.map_err(failed)? {
            Delta::Answer(text) => Map::from_iter([("text".to_owned(), text.into())]),
            Delta::Thought(text) => Map::from_iter([("thought".to_owned(), text.into())]),
            Delta::Call(call) => Map::from_iter([("toolCalls".to_owned(), json!([call]))]),
            // Other kinds of delta carry nothing for JavaScript.
            _ => Map::new(),
        };
        // The tokens since the previous delta. The text of some may be held back: it could begin a stop text.
        describe(&mut value, &reply.tokens()[told..], engine.tokenizer());
        told = reply.tokens().len();
        tell(on_event, &Value::Object(value))?;
    }
    let outcome = Outcome {
        engine,
        generation: reply.generation(),
        parts: reply.parts(),
        prompt: read - started_at,
        generate: milliseconds() - read - held,
    };
    Ok(outcome.json())
}

/// The event that reports a prompt as read: the parts of a result that deltas do not carry.
fn started(seed: u64, usage: Usage, milliseconds: f64) -> Value {
    json!({ "started": {
        "seed": seed,
        "promptTokens": usage.prompt_tokens,
        "reusedTokens": usage.reused_tokens,
        "promptMs": milliseconds,
    } })
}

/// A complete reply.
struct Outcome<'a> {
    engine: &'a Engine,
    generation: &'a Generation<'a>,
    parts: &'a ReplyParts,
    /// Milliseconds in which the prompt was read.
    prompt: f64,
    /// Milliseconds in which the tokens were generated.
    generate: f64,
}

impl Outcome<'_> {
    fn json(&self) -> Value {
        let Self { engine, generation, parts, prompt, generate } = self;
        let usage = generation.usage();
        let mut value = Map::new();
        describe(&mut value, generation.tokens(), engine.tokenizer());
        value.insert("text".into(), parts.answer.as_str().into());
        value.insert("thought".into(), parts.thought.as_str().into());
        value.insert("toolCalls".into(), json!(parts.calls));
        value.insert("finishReason".into(), json!(generation.finish_reason().map(FinishReason::as_str)));
        value.insert("seed".into(), json!(generation.seed()));
        value.insert(
            "usage".into(),
            json!({
                "promptTokens": usage.prompt_tokens,
                "reusedTokens": usage.reused_tokens,
                "generatedTokens": usage.generated_tokens,
            }),
        );
        value.insert("timings".into(), json!({ "promptMs": prompt, "generateMs": generate }));
        Value::Object(value)
    }
}

/// Adds the ids of tokens, and their log-probabilities if they were requested.
fn describe(value: &mut Map<String, Value>, tokens: &[Sampled], tokenizer: &Tokenizer) {
    value.insert("ids".into(), tokens.iter().map(|token| token.id).collect());
    if tokens.iter().all(|token| token.logprob.is_none()) {
        return;
    }
    let describe = |id: u32, logprob: Option<f32>| {
        // Every sampled id is in the vocabulary.
        let bytes = tokenizer.piece(id, SpecialOutput::All).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        json!({ "id": id, "token": text, "bytes": &bytes[..], "logprob": logprob })
    };
    let logprobs = tokens.iter().map(|token| {
        let mut chosen = describe(token.id, token.logprob);
        chosen["top"] = token.top.iter().map(|top| describe(top.id, Some(top.logprob))).collect();
        chosen
    });
    value.insert("logprobs".into(), logprobs.collect());
}

/// Reports an event. If the listener throws, the reply ends with that error.
fn tell(on_event: &Function, delta: &Value) -> Result<(), Failure> {
    on_event.call1(&JsValue::UNDEFINED, &delta.to_string().into()).map(|_| ())
}
