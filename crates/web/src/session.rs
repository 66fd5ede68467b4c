//! A conversation and its replies.
//!
//! A reply borrows its session, which no JavaScript object can hold. So a call takes the session out of its slot, does
//! all of the reply, and puts it back; what became known on the way goes to a function that the caller gave.

use std::{cell::RefCell, rc::Rc};

use js_sys::{Function, Promise};
use rullama_chat::{Delta, ReplyParts};
use rullama_engine::{Engine, FinishReason, Generation, Reply, Sampled, Session};
use rullama_tokenizer::{SpecialOutput, Tokenizer};
use serde_json::{Map, Value, json};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::{
    Cancel,
    error::{Failure, Thrown, plain},
    gate::Gate,
    host::milliseconds,
    options,
};

/// A conversation: what the model has read so far, ready to be continued. One reply at a time.
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

    /// Runs `work` on the session, and gives its result as JSON.
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
    /// Answers a whole conversation. What it has in common with what was read before is not read again.
    ///
    /// `on_delta` is told each part of the answer as it becomes known; the promise gives the whole. Both are JSON.
    #[wasm_bindgen(unchecked_return_type = "Promise<string>")]
    pub fn chat(&self, messages: String, options: String, on_delta: Function, cancel: &Cancel) -> Promise {
        let gate = self.gate.clone();
        self.run(cancel, async move |session, thrown| {
            let (messages, options) = (options::messages(&messages)?, options::chat_options(&options)?);
            let engine = session.engine().clone();
            let reply = session.chat(&messages, &options).map_err(|error| thrown.failure(error))?;
            finish(&engine, reply, &on_delta, &gate, thrown).await
        })
    }

    /// Adds a message to the conversation and answers it; the answer becomes part of the conversation, as far as it got.
    #[wasm_bindgen(unchecked_return_type = "Promise<string>")]
    pub fn send(&self, message: String, options: String, on_delta: Function, cancel: &Cancel) -> Promise {
        let gate = self.gate.clone();
        self.run(cancel, async move |session, thrown| {
            let mut messages = options::messages(&format!("[{message}]"))?;
            let options = options::chat_options(&options)?;
            let Some(message) = messages.pop().filter(|_| messages.is_empty()) else {
                return Err(plain("chat.wrong_type", "one message was expected"));
            };
            let engine = session.engine().clone();
            let reply = session.send(message, &options).map_err(|error| thrown.failure(error))?;
            finish(&engine, reply, &on_delta, &gate, thrown).await
        })
    }

    /// Continues tokens, taken as they are.
    #[wasm_bindgen(unchecked_return_type = "Promise<string>")]
    pub fn generate(&self, ids: Vec<u32>, options: String, on_delta: Function, cancel: &Cancel) -> Promise {
        let gate = self.gate.clone();
        self.run(cancel, async move |session, thrown| {
            let options = options::generate_options(&options)?;
            let engine = session.engine().clone();
            let failed = |error| thrown.failure(error);
            gate.pass().await;
            let started = milliseconds();
            let mut generation = session.generate(&ids, &options, SpecialOutput::Hidden).map_err(failed)?;
            generation.read_prompt().await.map_err(failed)?;
            let read = milliseconds();
            let (mut parts, mut held) = (ReplyParts::default(), 0.0);
            while let Some(token) = generation.next().await {
                held += gate.pass().await;
                let token = token.map_err(failed)?;
                let mut delta = Map::from_iter([("text".to_owned(), token.text.as_str().into())]);
                describe(&mut delta, std::slice::from_ref(&token.sampled), engine.tokenizer());
                tell(&on_delta, &Value::Object(delta))?;
                parts.push(Delta::Answer(token.text));
            }
            let outcome = Outcome {
                engine: &engine,
                generation: &generation,
                parts: &parts,
                prompt: read - started,
                generate: milliseconds() - read - held,
            };
            Ok(outcome.json())
        })
    }

    /// The messages of `send` and the replies to them, as JSON.
    pub fn messages(&self) -> Result<String, Failure> {
        let slot = self.slot.borrow();
        let session = slot.as_ref().ok_or_else(busy)?;
        serde_json::to_string(session.messages()).map_err(|error| plain("internal", &error.to_string()))
    }

    /// Tokens that the model has read and remembers.
    pub fn length(&self) -> Result<u32, Failure> {
        let slot = self.slot.borrow();
        Ok(slot.as_ref().ok_or_else(busy)?.history().len() as u32)
    }

    /// Forgets everything.
    pub fn clear(&self) -> Result<(), Failure> {
        self.slot.borrow_mut().as_mut().ok_or_else(busy)?.clear();
        Ok(())
    }
}

fn busy() -> Failure {
    plain("session.busy", "the session is writing a reply; it writes one at a time")
}

/// Writes a reply to its end.
async fn finish(
    engine: &Engine,
    mut reply: Reply<'_>,
    on_delta: &Function,
    gate: &Gate,
    thrown: &Thrown,
) -> Result<Value, Failure> {
    let failed = |error| thrown.failure(error);
    gate.pass().await;
    let started = milliseconds();
    reply.read_prompt().await.map_err(failed)?;
    let read = milliseconds();
    let (mut told, mut held) = (0, 0.0);
    while let Some(delta) = reply.next().await {
        held += gate.pass().await;
        let mut value = match delta.map_err(failed)? {
            Delta::Answer(text) => Map::from_iter([("text".to_owned(), text.into())]),
            Delta::Thought(text) => Map::from_iter([("thought".to_owned(), text.into())]),
            Delta::Call(call) => Map::from_iter([("toolCalls".to_owned(), json!([call]))]),
            // Nothing that a reader could use.
            _ => Map::new(),
        };
        // Tokens that were chosen since the last delta. Some of their text may still be held back.
        describe(&mut value, &reply.tokens()[told..], engine.tokenizer());
        told = reply.tokens().len();
        tell(on_delta, &Value::Object(value))?;
    }
    let outcome = Outcome {
        engine,
        generation: reply.generation(),
        parts: reply.parts(),
        prompt: read - started,
        generate: milliseconds() - read - held,
    };
    Ok(outcome.json())
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

/// Adds the ids of tokens, and their log-probabilities where these were asked for.
fn describe(value: &mut Map<String, Value>, tokens: &[Sampled], tokenizer: &Tokenizer) {
    value.insert("ids".into(), tokens.iter().map(|token| token.id).collect());
    if tokens.iter().all(|token| token.logprob.is_none()) {
        return;
    }
    let describe = |id: u32, logprob: Option<f32>| {
        // What was chosen is a token.
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

/// Hands a delta on. What the listener throws ends the reply.
fn tell(on_delta: &Function, delta: &Value) -> Result<(), Failure> {
    on_delta.call1(&JsValue::UNDEFINED, &delta.to_string().into()).map(|_| ())
}
