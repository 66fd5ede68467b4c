//! One conversation's state.

use std::rc::Rc;

use rullama_chat::{Conversation, Message, Prompt, Tool, render};
use rullama_tokenizer::{EncodeOptions, SpecialOutput};

use crate::{
    Engine, EngineError, GenerateOptions, Generation, Logits, Reply, State, StepProgress,
    generation::GenerationSetup,
};

/// What a backend says when what it computes on is gone.
const DEVICE_LOST: &str = "device.lost";

/// What a conversation is answered with.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatOptions {
    /// How the reply is generated.
    pub generate: GenerateOptions,
    /// Whether the model thinks first.
    pub think: bool,
    /// Tools the model may call.
    pub tools: Vec<Tool>,
}

impl Default for ChatOptions {
    fn default() -> Self {
        Self { generate: GenerateOptions::default(), think: true, tools: Vec::new() }
    }
}

/// A conversation: what the model has read so far, ready to be continued.
///
/// The tokens of a prompt are compared with those already read, and only the difference is computed. Whatever
/// happens to a reply, finished, failed or dropped, the session stays valid. Where a GPU is lost and can be had again, it
/// reads the conversation again and goes on.
pub struct Session {
    pub(crate) engine: Engine,
    pub(crate) state: Box<dyn State>,
    /// The tokens that `state` remembers.
    pub(crate) history: Vec<u32>,
    pub(crate) messages: Vec<Message>,
    rows: u64,
    seed: u64,
}

impl Session {
    pub(crate) fn new(engine: Engine) -> Result<Self, EngineError> {
        let state = engine.inner.backend.state()?;
        let seed = engine.inner.entropy.next();
        Ok(Self { engine, state, history: Vec::new(), messages: Vec::new(), rows: 0, seed })
    }

    /// The model it talks to.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The messages of [`send`](Self::send) and the replies to them.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The tokens the model has read and remembers.
    pub fn history(&self) -> &[u32] {
        &self.history
    }

    /// Rows computed since the session began: what reading costs, and what a shared beginning saves.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Tells `watcher` how far each step has got, on backends whose steps take long.
    pub fn watch(&mut self, watcher: impl Fn(StepProgress) + 'static) {
        self.state.watch(Rc::new(watcher));
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.messages.clear();
        self.set_back(0);
    }

    /// Adds a message to the conversation and begins the model's reply. The reply becomes part of the
    /// conversation, as far as it got.
    pub fn send(&mut self, message: Message, options: &ChatOptions) -> Result<Reply<'_>, EngineError> {
        let mut messages = self.messages.clone();
        messages.push(message.clone());
        let (prompt, ids) = self.prepare(&messages, options)?;
        let mut reply = Reply::new(self, prompt, ids, options)?;
        // From here on nothing can fail, so that a message that cannot be answered is no part of the conversation.
        reply.keep_after(message);
        Ok(reply)
    }

    /// Begins the reply to a whole conversation. What it has in common with what was read before is not read
    /// again.
    pub fn chat(&mut self, messages: &[Message], options: &ChatOptions) -> Result<Reply<'_>, EngineError> {
        let (prompt, ids) = self.prepare(messages, options)?;
        Reply::new(self, prompt, ids, options)
    }

    /// Begins to continue `ids`, taken as they are.
    pub fn generate(
        &mut self,
        ids: &[u32],
        options: &GenerateOptions,
        special: SpecialOutput,
    ) -> Result<Generation<'_>, EngineError> {
        let setup = GenerationSetup { options, special, guard: false };
        Generation::new(self, ids.to_vec(), setup)
    }

    /// The logits of the last of `ids`, or of all of them, read from the beginning.
    pub async fn logits(&mut self, ids: &[u32], all: bool) -> Result<Logits, EngineError> {
        self.check_length(ids, 0)?;
        self.set_back(0);
        match self.read_all(ids, all).await {
            Err(error) if self.recover(&error).await? => self.read_all(ids, all).await,
            result => result,
        }
    }

    async fn read_all(&mut self, ids: &[u32], all: bool) -> Result<Logits, EngineError> {
        if all { self.step(ids, true).await } else { self.read(ids).await }
    }

    /// After an error that says that the device is gone: has it replaced. The conversation is still there, but nothing
    /// of it is read any more.
    pub(crate) async fn recover(&mut self, error: &EngineError) -> Result<bool, EngineError> {
        let recovered = error.code() == DEVICE_LOST && self.state.recover().await?;
        if recovered {
            self.history.truncate(self.state.len());
        }
        Ok(recovered)
    }

    /// The logits after `ids`. What was read before is not read again, so that asking once for each token costs no
    /// more than generating them.
    pub async fn next_logits(&mut self, ids: &[u32]) -> Result<Logits, EngineError> {
        self.check_length(ids, 0)?;
        let rest = self.keep_common(ids);
        match self.read(rest).await {
            Err(error) if self.recover(&error).await? => {
                let rest = self.keep_common(ids);
                self.read(rest).await
            }
            result => result,
        }
    }

    /// The tokens of a conversation's prompt.
    fn prepare(
        &self,
        messages: &[Message],
        options: &ChatOptions,
    ) -> Result<(Prompt, Vec<u32>), EngineError> {
        let conversation = Conversation { messages, tools: &options.tools, think: options.think };
        let prompt = render(&conversation, self.engine.inner.prompts)?;
        if let Some(medium) = prompt.media.first() {
            return Err(EngineError::Media { message: medium.message });
        }
        let options = EncodeOptions { bos: true, ..EncodeOptions::PART };
        let ids = self.engine.tokenizer().encode(&prompt.to_string(), options);
        Ok((prompt, ids))
    }

    /// A seed for a reply whose options name none: another for each reply. It has 53 bits, so that it survives JSON
    /// and JavaScript, and the reply can be repeated with it.
    pub(crate) fn next_seed(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.seed & ((1 << 53) - 1)
    }

    /// Sets where the seeds of replies start whose options name none. Without it a session starts at a number from
    /// [`LoadOptions::entropy`](crate::LoadOptions::entropy). Two sessions that are given the same number write the
    /// same replies.
    pub fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// A prompt has at least one token and leaves room for `reply` more.
    pub(crate) fn check_length(&self, ids: &[u32], reply: usize) -> Result<(), EngineError> {
        let context = self.engine.context();
        if ids.is_empty() {
            return Err(EngineError::EmptyPrompt);
        }
        if ids.len() + reply > context {
            let fits = context.saturating_sub(reply);
            return Err(EngineError::ContextOverflow { tokens: ids.len(), fits, context });
        }
        Ok(())
    }

    /// Sets the conversation back to what it has in common with `ids`, and gives the rest, which is never
    /// empty: the last token's logits are needed.
    pub(crate) fn keep_common<'i>(&mut self, ids: &'i [u32]) -> &'i [u32] {
        let common = self.history.iter().zip(ids).take_while(|(a, b)| a == b).count();
        self.set_back(common.min(ids.len() - 1));
        &ids[self.history.len()..]
    }

    pub(crate) fn set_back(&mut self, len: usize) {
        self.state.truncate(len);
        self.history.truncate(self.state.len());
    }

    /// Reads `ids` in steps of a good size and gives the logits of the last.
    pub(crate) async fn read(&mut self, ids: &[u32]) -> Result<Logits, EngineError> {
        let size = self.engine.inner.backend.rows_at_once();
        let (first, last) = ids.split_at(ids.len().saturating_sub(1) / size * size);
        for ids in first.chunks(size) {
            self.step(ids, false).await?;
        }
        self.step(last, false).await
    }

    pub(crate) async fn step(&mut self, ids: &[u32], all: bool) -> Result<Logits, EngineError> {
        // A step that was dropped halfway has read nothing; the history agrees with that already.
        let logits = self.state.step(ids, all).await?;
        self.has_read(ids);
        Ok(logits)
    }

    /// Takes note of what the state has read.
    pub(crate) fn has_read(&mut self, ids: &[u32]) {
        self.history.extend_from_slice(ids);
        self.rows += ids.len() as u64;
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("messages", &self.messages.len())
            .field("history", &self.history.len())
            .field("rows", &self.rows)
            .finish()
    }
}
