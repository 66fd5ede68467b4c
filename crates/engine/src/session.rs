//! One conversation's state.

use std::rc::Rc;

use rullama_chat::{Message, Tool};
use rullama_tokenizer::SpecialOutput;

use crate::{
    Engine, EngineError, GenerateOptions, Generation, LogitRows, Logits, Media, PromptRows, Recovery, Reply,
    State, StepProgress, StepRows, Watcher, generation::GenerationSetup, steps::Steps,
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
    /// The images and sounds that messages attach.
    pub media: Media,
}

impl Default for ChatOptions {
    fn default() -> Self {
        Self { generate: GenerateOptions::default(), think: true, tools: Vec::new(), media: Media::new() }
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
    /// The rows in the cache of `state`.
    pub(crate) history: PromptRows,
    pub(crate) messages: Vec<Message>,
    /// What these messages attach.
    media: Media,
    /// Called with the progress of steps. A state that replaces this one gets it too.
    watcher: Option<Watcher>,
    rows: u64,
}

impl Session {
    pub(crate) fn new(engine: Engine) -> Result<Self, EngineError> {
        let state = engine.inner.backend.state()?;
        let history = PromptRows::default();
        Ok(Self { engine, state, history, messages: Vec::new(), media: Media::new(), watcher: None, rows: 0 })
    }

    /// The model that answers.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The messages of [`send`](Self::send) and the replies to them.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The tokens the model has read and remembers. Rows of pictures and sounds have a placeholder each.
    pub fn history(&self) -> &[u32] {
        &self.history.ids
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

    /// What the messages of [`send`](Self::send) attach. A restored conversation needs its attachments too.
    pub fn media_mut(&mut self) -> &mut Media {
        &mut self.media
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.messages.clear();
        self.media.clear();
        self.set_back(0);
    }

    /// Adds a message to the conversation and begins the model's reply. The reply becomes part of the conversation,
    /// even if it is dropped before its end.
    pub fn send(&mut self, message: Message, options: &ChatOptions) -> Result<Reply<'_>, EngineError> {
        let mut messages = self.messages.clone();
        messages.push(message.clone());
        let mut media = self.media.clone();
        media.extend(options.media.clone());
        let (prompt, rows) = self.engine.prompt_with(&messages, options, &media)?;
        let mut reply = Reply::new(self, prompt, rows, options)?;
        // Last, because a message that cannot be answered must not become part of the conversation.
        reply.keep_after(message, media);
        Ok(reply)
    }

    /// Begins the reply to a whole conversation. The session does not read the beginning again that it has read before.
    pub fn chat(&mut self, messages: &[Message], options: &ChatOptions) -> Result<Reply<'_>, EngineError> {
        let (prompt, rows) = self.engine.prompt(messages, options)?;
        Reply::new(self, prompt, rows, options)
    }

    /// Begins to continue a prompt, taken as it is: token ids, or rows.
    pub fn generate(
        &mut self,
        prompt: impl Into<PromptRows>,
        options: &GenerateOptions,
        special: SpecialOutput,
    ) -> Result<Generation<'_>, EngineError> {
        let setup = GenerationSetup { options, special, guarded: false };
        Generation::new(self, prompt.into(), setup)
    }

    /// The logits of the last row of a prompt, or of all rows, read from the beginning.
    pub async fn logits(&mut self, prompt: impl Into<PromptRows>, all: bool) -> Result<Logits, EngineError> {
        let prompt = prompt.into();
        let rows = prompt.rows();
        self.check_prompt(rows, 0)?;
        match self.read_anew(rows, all).await {
            Err(error) if self.recover(&error).await? => self.read_anew(rows, all).await,
            result => result,
        }
    }

    async fn read_anew(&mut self, rows: StepRows<'_>, all: bool) -> Result<Logits, EngineError> {
        self.set_back(0);
        if all { self.read_all(rows).await } else { self.read(rows).await }
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
        self.keep(self.state.len());
        Ok(true)
    }

    /// The logits after a prompt. The session does not read the beginning again that it has read before, so asking once for
    /// each token costs no more than generating them.
    pub async fn next_logits(&mut self, prompt: impl Into<PromptRows>) -> Result<Logits, EngineError> {
        let prompt = prompt.into();
        let rows = prompt.rows();
        self.check_prompt(rows, 0)?;
        let rest = self.keep_common(rows);
        match self.read(rest).await {
            Err(error) if self.recover(&error).await? => {
                let rest = self.keep_common(rows);
                self.read(rest).await
            }
            result => result,
        }
    }

    /// Adds a message, and everything that the conversation attaches with it.
    pub(crate) fn add(&mut self, message: Message, media: Media) {
        self.messages.push(message);
        self.media = media;
    }

    /// A prompt has at least one row and leaves room for `reply` more. Its media lie inside it, one after another.
    pub(crate) fn check_prompt(&self, prompt: StepRows<'_>, reply: usize) -> Result<(), EngineError> {
        let context = self.engine.context();
        if prompt.is_empty() {
            return Err(EngineError::EmptyPrompt);
        }
        let mut end = 0;
        for span in prompt.media {
            if span.at < end || span.range().end > prompt.len() || span.rows.is_empty() {
                return Err(EngineError::MediaPlace { at: span.at, rows: span.rows.len() });
            }
            end = span.range().end;
        }
        if prompt.len() + reply > context {
            let fits = context.saturating_sub(reply);
            return Err(EngineError::ContextOverflow { tokens: prompt.len(), fits, context });
        }
        Ok(())
    }

    /// Sets the conversation back to the beginning that it shares with `prompt`, and gives the rest of `prompt`. The rest is
    /// never empty, because the caller needs the logits of the last row.
    pub(crate) fn keep_common<'i>(&mut self, prompt: StepRows<'i>) -> StepRows<'i> {
        let mut keep = prompt.shared_with(self.history.rows()).min(prompt.len() - 1);
        loop {
            keep = prompt.whole(keep);
            self.set_back(keep);
            let kept = self.history.ids.len();
            // A state may keep fewer, and may so have cut a picture.
            if kept == prompt.whole(kept) {
                return prompt.split_at(kept).1;
            }
            keep = kept;
        }
    }

    pub(crate) fn set_back(&mut self, len: usize) {
        self.state.truncate(len);
        self.keep(self.state.len());
    }

    /// Cuts the history to the first `len` rows.
    fn keep(&mut self, len: usize) {
        self.history.ids.truncate(len);
        self.history.media.retain(|span| span.at < len);
    }

    /// Reads `rows` and gives the logits of the last.
    pub(crate) async fn read(&mut self, rows: StepRows<'_>) -> Result<Logits, EngineError> {
        let last = self.read_before_last(rows).await?;
        self.step(last, LogitRows::Last).await
    }

    /// Reads `rows` except for those of the last step, which it gives back.
    pub(crate) async fn read_before_last<'i>(
        &mut self,
        rows: StepRows<'i>,
    ) -> Result<StepRows<'i>, EngineError> {
        let steps = self.steps(rows, LogitRows::Last)?;
        for rows in steps.before_last {
            self.step(rows, LogitRows::None).await?;
        }
        Ok(steps.last)
    }

    /// Reads `rows` and gives the logits of all.
    async fn read_all(&mut self, rows: StepRows<'_>) -> Result<Logits, EngineError> {
        let steps = self.steps(rows, LogitRows::All)?;
        let mut values = Vec::new();
        for rows in steps.before_last {
            values.extend(self.step(rows, LogitRows::All).await?.values);
        }
        let last = self.step(steps.last, LogitRows::All).await?;
        values.extend(last.values);
        Ok(Logits { values, vocabulary: last.vocabulary })
    }

    fn steps<'i>(&self, rows: StepRows<'i>, logits: LogitRows) -> Result<Steps<'i>, EngineError> {
        let backend = &self.engine.inner.backend;
        Steps::cut(rows, backend.rows_at_once(logits), backend.rows_together(logits))
    }

    pub(crate) async fn step(
        &mut self,
        rows: StepRows<'_>,
        logits: LogitRows,
    ) -> Result<Logits, EngineError> {
        // A step that is dropped before its end has read nothing, and the history does not count it either.
        let logits = self.state.step(rows, logits).await?;
        self.has_read(rows);
        Ok(logits)
    }

    /// Adds rows that the state has read to the history.
    pub(crate) fn has_read(&mut self, rows: StepRows<'_>) {
        let end = rows.at + rows.len();
        let PromptRows { ids, media } = &mut self.history;
        ids.extend_from_slice(rows.ids);
        // A sound may be read in several steps; it is there from the first of them on.
        media.extend(rows.media.iter().filter(|span| (rows.at..end).contains(&span.at)).cloned());
        self.rows += rows.len() as u64;
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("messages", &self.messages.len())
            .field("history", &self.history.ids.len())
            .field("rows", &self.rows)
            .finish()
    }
}
