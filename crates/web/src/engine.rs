//! A loaded model.

use std::cell::RefCell;

use js_sys::{Function, Promise};
use rullama_chat::{Conversation, render};
use rullama_engine::{EncodeProgress, Engine, GenerateOptions, SamplingOptions, Session};
use rullama_gguf::{ByteSource, Model};
use rullama_media::{Budget, Pixels, Samples};
use rullama_tokenizer::{EncodeOptions, SpecialInput, SpecialOutput};
use serde_json::Value;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::{
    Cancel, JsByteSource, WebAttachment, WebSession, backend,
    error::{Failure, Thrown, failure},
    gate::Gate,
    info,
    options::{self, LoadRequest},
    source::JsSource,
};

/// Tokens of the warm-up prompt: enough to compile the kernels of a prompt, not those of single tokens.
const WARM_UP: usize = 16;

/// A loaded model.
#[wasm_bindgen]
pub struct WebEngine {
    engine: Engine,
    file: Value,
    thrown: Thrown,
    /// Every reply passes it before each token.
    gate: Gate,
    /// The session of the warm-up, which becomes the first session.
    warm: RefCell<Option<Session>>,
}

#[wasm_bindgen]
impl WebEngine {
    /// Loads a model from one file, or from all parts of a split model, with its projector file beside it if it has one.
    ///
    /// `progress` is called with `(status, loaded, total)`: bytes for `upload`, steps for `compile`.
    #[wasm_bindgen(unchecked_return_type = "Promise<WebEngine>")]
    pub fn load(
        sources: Vec<JsByteSource>,
        projector: Option<JsByteSource>,
        options: String,
        progress: Function,
        cancel: &Cancel,
    ) -> Promise {
        let cancel = cancel.clone();
        future_to_promise(async move {
            let request = LoadRequest::parse(&options)?;
            let engine = cancel.unless(load(sources, projector, &request, &progress)).await?;
            Ok(engine.into())
        })
    }

    /// The model and what computes it, as JSON.
    pub fn info(&self) -> String {
        info::of_engine(&self.engine, &self.file).to_string()
    }

    /// A new conversation.
    pub fn session(&self) -> Result<WebSession, Failure> {
        let session = match self.warm.borrow_mut().take() {
            Some(session) => session,
            None => self.engine.session().map_err(failure)?,
        };
        Ok(WebSession::new(session, self.thrown.clone(), self.gate.clone()))
    }

    /// Encodes an image of RGBA pixels as at most `budget` rows, 280 unless told otherwise. An image that was encoded before is
    /// not encoded again. `progress` is called with the part that is done, from 0 to 1.
    #[wasm_bindgen(js_name = encodeImage, unchecked_return_type = "Promise<WebAttachment>")]
    pub fn encode_image(
        &self,
        rgba: Vec<u8>,
        width: u32,
        height: u32,
        budget: Option<u32>,
        progress: Function,
        cancel: &Cancel,
    ) -> Promise {
        let (engine, thrown, cancel) = (self.engine.clone(), self.thrown.clone(), cancel.clone());
        future_to_promise(async move {
            let budget = budget.map_or_else(|| Ok(Budget::default()), Budget::new).map_err(failure)?;
            let image = Pixels::from_rgba(width, height, &rgba).map_err(failure)?;
            drop(rgba);
            let work = async {
                let encoded = engine.encode_image(&image, budget, &mut |done| told(&progress, done)).await;
                encoded.map_err(|error| thrown.failure(error))
            };
            let attachment = cancel.unless(work).await?;
            let digest = image.digest();
            Ok(WebAttachment::new(digest.as_bytes(), Some(budget.soft_tokens()), attachment).into())
        })
    }

    /// Encodes a sound of one channel with 16,000 samples a second, in the same way.
    #[wasm_bindgen(js_name = encodeSound, unchecked_return_type = "Promise<WebAttachment>")]
    pub fn encode_sound(&self, samples: Vec<f32>, progress: Function, cancel: &Cancel) -> Promise {
        let (engine, thrown, cancel) = (self.engine.clone(), self.thrown.clone(), cancel.clone());
        future_to_promise(async move {
            let sound = Samples::new(samples).map_err(failure)?;
            let work = async {
                let encoded = engine.encode_sound(&sound, &mut |done| told(&progress, done)).await;
                encoded.map_err(|error| thrown.failure(error))
            };
            let attachment = cancel.unless(work).await?;
            Ok(WebAttachment::new(sound.digest().as_bytes(), None, attachment).into())
        })
    }

    /// The tokens of a text. `bos` adds a `<bos>`; `special` recognises special tokens in the text.
    pub fn tokenize(&self, text: &str, bos: bool, special: bool) -> Vec<u32> {
        let special = if special { SpecialInput::Parse } else { SpecialInput::Text };
        self.engine.tokenizer().encode(text, EncodeOptions { special, bos })
    }

    /// The text of tokens. `special` includes special tokens.
    pub fn detokenize(&self, ids: &[u32], special: bool) -> Result<String, Failure> {
        let special = if special { SpecialOutput::All } else { SpecialOutput::Hidden };
        self.engine.tokenizer().decode(ids, special).map_err(failure)
    }

    /// Whether a token ends a reply.
    #[wasm_bindgen(js_name = isEnd)]
    pub fn is_end(&self, id: u32) -> bool {
        self.engine.tokenizer().is_end(id)
    }

    /// The prompt text of a conversation.
    pub fn render(&self, messages: &str, options: &str) -> Result<String, Failure> {
        let (messages, options) = (options::messages(messages)?, options::chat_options(options)?);
        let conversation = Conversation { messages: &messages, tools: &options.tools, think: options.think };
        let prompt = render(&conversation, self.engine.prompts()).map_err(failure)?;
        Ok(prompt.to_string())
    }

    /// The kernels that the model runs, as JSON.
    pub fn kernels(&self) -> Result<String, Failure> {
        Ok(backend::kernels(&self.engine)?.to_string())
    }

    /// Pauses all replies before their next token. Paused replies can still be cancelled.
    pub fn pause(&self) {
        self.gate.close();
    }

    /// Lets paused replies continue.
    pub fn resume(&self) {
        self.gate.open();
    }

    /// Frees the model's memory at once. Replies have to end first; one that still runs fails.
    pub fn unload(self) {
        backend::unload(&self.engine);
    }
}

fn told(progress: &Function, done: EncodeProgress) {
    // An error of the listener does not stop the encoding.
    let _ = progress.call1(&JsValue::UNDEFINED, &done.fraction().into());
}

async fn load(
    sources: Vec<JsByteSource>,
    projector: Option<JsByteSource>,
    request: &LoadRequest,
    progress: &Function,
) -> Result<WebEngine, Failure> {
    let thrown = Thrown::default();
    let model = open(sources, projector, &thrown).await.map_err(|error| thrown.failure(error))?;
    let file = info::of_file(&model);
    let tell = |status: &str, loaded: u64, total: u64| {
        let (loaded, total) = (loaded as f64, total as f64);
        // An error of the listener does not stop the load.
        let _ = progress.call3(&JsValue::UNDEFINED, &status.into(), &loaded.into(), &total.into());
    };
    let (engine, held) = backend::load(model, request, &thrown, &tell).await?;
    let session = warm_up(&engine).await.map_err(|error| thrown.failure(error))?;
    tell("compile", 2, 2);
    held.keep();
    Ok(WebEngine { engine, file, thrown, gate: Gate::default(), warm: RefCell::new(Some(session)) })
}

pub(crate) async fn open(
    sources: Vec<JsByteSource>,
    projector: Option<JsByteSource>,
    thrown: &Thrown,
) -> Result<Model, rullama_gguf::ModelError> {
    let source = |source| Box::new(JsSource::new(source, thrown.clone())) as Box<dyn ByteSource>;
    let mut sources: Vec<_> = sources.into_iter().map(source).collect();
    let model = match sources.len() {
        1 => Model::open(sources.remove(0)).await?,
        _ => Model::open_parts(sources).await?,
    };
    match projector {
        Some(projector) => model.join(Model::open(source(projector)).await?),
        None => Ok(model),
    }
}

/// Compiles the kernels that the first reply needs, so that it is as fast as later ones.
async fn warm_up(engine: &Engine) -> Result<Session, rullama_engine::EngineError> {
    const GENERATED: usize = 2;
    let mut session = engine.session()?;
    let read = WARM_UP.min(engine.context().saturating_sub(GENERATED)).max(1);
    let ids = vec![engine.tokenizer().bos(); read];
    let mut options = GenerateOptions { sampling: SamplingOptions::GREEDY, ..GenerateOptions::default() };
    (options.max_tokens, options.ignore_end) = (Some(GENERATED as u32), true);
    let mut generation = session.generate(&ids, &options, SpecialOutput::Hidden)?;
    while let Some(token) = generation.next().await {
        token?;
    }
    drop(generation);
    session.clear();
    Ok(session)
}
