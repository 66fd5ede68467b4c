//! One conversation's state.

use std::rc::Rc;

use rullama_chat::{Conversation, Message, Prompt, Tool, render};
use rullama_tokenizer::{EncodeOptions, SpecialOutput};

use crate::{
    Engine, EngineError, GenerateOptions, Generation, LogitRows, Logits, Recovery, Reply, State,
    StepProgress, Watcher, generation::GenerationSetup, steps::Steps,
};

/// How the model answers a conversation.
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
/// The session compares the tokens of a prompt with those it has read, and computes only the difference. It stays valid
/// whether a reply finishes, fails or is dropped. When a GPU is lost and can be opened again, the session reads the
/// conversation again and continues.
pub struct Session {
    pub(crate) engine: Engine,
    pub(crate) state: Box<dyn State>,
    /// The tokens in the cache of `state`.
    pub(crate) history: Vec<u32>,
    pub(crate) messages: Vec<Message>,
    /// Is told the progress of steps, also by a state that takes the place of this one.
    watcher: Option<Watcher>,
    rows: u64,
}

impl Session {
    pub(crate) fn new(engine: Engine) -> Result<Self, EngineError> {
        let state = engine.inner.backend.state()?;
        Ok(Self { engine, state, history: Vec::new(), messages: Vec::new(), watcher: None, rows: 0 })
    }

    /// The model that answers.
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

    /// The number of rows computed since the session began. A prompt that begins like the one before it adds few.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Calls `watcher` with the progress of each step, on backends whose steps take long.
    pub fn watch(&mut self, watcher: impl Fn(StepProgress) + 'static) {
        let watcher: Watcher = Rc::new(watcher);
        self.state.watch(watcher.clone());
        self.watcher = Some(watcher);
    }

    /// Gives an empty session the messages of another, as if they had been sent in this one. The model reads them with the
    /// next message.
    pub fn restore(&mut self, messages: Vec<Message>) {
        self.messages = messages;
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.messages.clear();
        self.set_back(0);
    }

    /// Adds a message to the conversation and begins the model's reply. The reply becomes part of the conversation,
    /// even if it is dropped before its end.
    pub fn send(&mut self, message: Message, options: &ChatOptions) -> Result<Reply<'_>, EngineError> {
        let mut messages = self.messages.clone();
        messages.push(message.clone());
        let (prompt, ids) = self.prepare(&messages, options)?;
        let mut reply = Reply::new(self, prompt, ids, options)?;
        // Last, because a message that cannot be answered must not become part of the conversation.
        reply.keep_after(message);
        Ok(reply)
    }

    /// Begins the reply to a whole conversation. The session does not read the beginning again that it has read before.
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
        let setup = GenerationSetup { options, special, guarded: false };
        Generation::new(self, ids.to_vec(), setup)
    }

    /// The logits of the last of `ids`, or of all of them, read from the beginning.
    pub async fn logits(&mut self, ids: &[u32], all: bool) -> Result<Logits, EngineError> {
        self.check_length(ids, 0)?;
        match self.read_anew(ids, all).await {
            Err(error) if self.recover(&error).await? => self.read_anew(ids, all).await,
            result => result,
        }
    }

    async fn read_anew(&mut self, ids: &[u32], all: bool) -> Result<Logits, EngineError> {
        self.set_back(0);
        if all { self.read_all(ids).await } else { self.read(ids).await }
    }

    /// After [`EngineError::DeviceLost`] or [`EngineError::Evicted`]: asks the state to start again, on a new device if need
    /// be. The messages stay; the tokens have to be read again.
    pub(crate) async fn recover(&mut self, error: &EngineError) -> Result<bool, EngineError> {
        if !matches!(error, EngineError::DeviceLost(_) | EngineError::Evicted) {
            return Ok(false);
        }
        match self.state.recover().await? {
            Recovery::None => return Ok(false),
            Recovery::Again => {}
            Recovery::Elsewhere(state) => {
                self.state = state;
                if let Some(watcher) = &self.watcher {
                    self.state.watch(watcher.clone());
                }
            }
        }
        self.history.truncate(self.state.len());
        Ok(true)
    }

    /// The logits after `ids`. The session does not read the beginning again that it has read before, so asking once for
    /// each token costs no more than generating them.
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

    /// Sets the conversation back to the beginning that it shares with `ids`, and gives the rest of `ids`. The rest is
    /// never empty, because the caller needs the logits of the last token.
    pub(crate) fn keep_common<'i>(&mut self, ids: &'i [u32]) -> &'i [u32] {
        let common = self.history.iter().zip(ids).take_while(|(a, b)| a == b).count();
        self.set_back(common.min(ids.len() - 1));
        &ids[self.history.len()..]
    }

    pub(crate) fn set_back(&mut self, len: usize) {
        self.state.truncate(len);
        self.history.truncate(self.state.len());
    }

    /// Reads `ids` and gives the logits of the last.
    pub(crate) async fn read(&mut self, ids: &[u32]) -> Result<Logits, EngineError> {
        let last = self.read_before_last(ids).await?;
        self.step(last, LogitRows::Last).await
    }

    /// Reads `ids` except for those of the last step, which it gives back.
    pub(crate) async fn read_before_last<'i>(&mut self, ids: &'i [u32]) -> Result<&'i [u32], EngineError> {
        let steps = self.steps(ids, LogitRows::Last);
        for ids in steps.before_last {
            self.step(ids, LogitRows::None).await?;
        }
        Ok(steps.last)
    }

    /// Reads `ids` and gives the logits of all.
    async fn read_all(&mut self, ids: &[u32]) -> Result<Logits, EngineError> {
        let steps = self.steps(ids, LogitRows::All);
        let mut values = Vec::new();
        for ids in steps.before_last {
            values.extend(self.step(ids, LogitRows::All).await?.values);
        }
        let last = self.step(steps.last, LogitRows::All).await?;
        values.extend(last.values);
        Ok(Logits { values, vocabulary: last.vocabulary })
    }

    fn steps<'i>(&self, ids: &'i [u32], logits: LogitRows) -> Steps<'i> {
        Steps::cut(ids, self.engine.inner.backend.rows_at_once(logits))
    }

    pub(crate) async fn step(&mut self, ids: &[u32], logits: LogitRows) -> Result<Logits, EngineError> {
        // A step that is dropped before its end has read nothing, and the history does not count it either.
        let logits = self.state.step(ids, logits).await?;
        self.has_read(ids);
        Ok(logits)
    }

    /// Adds tokens that the state has read to the history.
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
