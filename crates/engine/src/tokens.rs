//! The tokens of a reply, before they become text: reads the prompt, chooses a token, reads it, chooses the next.
//!
//! [`Generation`](crate::Generation) makes text of these tokens, and [`Reply`](crate::Reply) makes an answer of that text.

use std::collections::VecDeque;

use crate::{
    Choosing, EngineError, LogitRows, Logits, MediaSpan, PromptRows, Sampled, Sampler, SamplingOptions,
    Session, StepRows,
};

/// The number of lost devices that a reply survives. A device that is lost again and again will not stay.
const RECOVERIES: u32 = 2;

/// Which side chooses the tokens.
enum Chooser {
    /// Not known yet: the prompt has to be read first, or read again after a device was lost.
    Unknown,
    /// The backend. Holds the first token it chose, until the caller asks for it.
    Backend(Option<u32>),
    /// The sampler. Holds the logits of the last token until the sampler has used them; then the last token is unread.
    Sampler(Option<Logits>),
}

/// A stream of tokens that continues a prompt. The session stays valid when the stream is dropped.
pub(crate) struct TokenStream<'s> {
    session: &'s mut Session,
    /// The prompt, and the tokens generated after it. The session's history is the part of them that was read.
    tokens: Vec<u32>,
    /// The rows of the prompt that towers made.
    media: Vec<MediaSpan>,
    prompt_tokens: usize,
    /// Tokens of the prompt that the session had read before.
    reused_tokens: usize,
    /// The most tokens to generate.
    most: usize,
    sampler: Sampler,
    chooser: Chooser,
    recoveries: u32,
    /// Tokens that were generated elsewhere, and come first.
    given: VecDeque<u32>,
}

impl<'s> TokenStream<'s> {
    /// Continues `prompt` by at most `most` tokens, and by no more than the context has room for.
    pub(crate) fn new(
        session: &'s mut Session,
        prompt: PromptRows,
        sampling: &SamplingOptions,
        most: Option<u32>,
    ) -> Result<Self, EngineError> {
        session.check_prompt(prompt.rows(), 1)?;
        let PromptRows { ids, media } = prompt;
        let room = session.engine.context() - ids.len();
        let seed = Some(sampling.seed.unwrap_or_else(|| session.engine.inner.entropy.seed()));
        let sampling = SamplingOptions { seed, ..sampling.clone() };
        let sampler = Sampler::new(&sampling, session.engine.tokenizer().suppressed_tokens())?;
        Ok(Self {
            session,
            prompt_tokens: ids.len(),
            tokens: ids,
            media,
            reused_tokens: 0,
            most: most.map_or(room, |most| room.min(most as usize)),
            sampler,
            chooser: Chooser::Unknown,
            recoveries: 0,
            given: VecDeque::new(),
        })
    }

    /// Begins with tokens that another engine generated for the same prompt, options and seed. They are not computed again.
    pub(crate) fn resume(&mut self, ids: &[u32]) {
        self.given = ids.iter().copied().take(self.most).collect();
    }

    pub(crate) fn session(&self) -> &Session {
        self.session
    }

    pub(crate) fn session_mut(&mut self) -> &mut Session {
        self.session
    }

    pub(crate) fn seed(&self) -> u64 {
        self.sampler.seed()
    }

    pub(crate) fn prompt_tokens(&self) -> usize {
        self.prompt_tokens
    }

    pub(crate) fn reused_tokens(&self) -> usize {
        self.reused_tokens
    }

    /// The number of tokens generated.
    pub(crate) fn generated(&self) -> usize {
        self.tokens.len() - self.prompt_tokens
    }

    /// Whether as many tokens were generated as were asked for or have room.
    pub(crate) fn is_full(&self) -> bool {
        self.generated() == self.most
    }

    /// Reads the prompt and waits until it has been read. Does nothing if it has been, or if tokens are given: the prompt is
    /// then read together with them.
    pub(crate) async fn read_prompt(&mut self) -> Result<(), EngineError> {
        if !self.given.is_empty() {
            return Ok(());
        }
        while let Err(error) = self.begin().await {
            self.recover(error).await?;
        }
        Ok(())
    }

    /// The next token. There must be room for one.
    pub(crate) async fn next(&mut self) -> Result<Sampled, EngineError> {
        if let Some(id) = self.given.pop_front() {
            self.sampler.skip();
            self.tokens.push(id);
            return Ok(Sampled { id, logprob: None, top: Vec::new() });
        }
        let sampled = loop {
            self.read_prompt().await?;
            match self.choose().await {
                Ok(sampled) => break sampled,
                Err(error) => self.recover(error).await?,
            }
        };
        self.tokens.push(sampled.id);
        Ok(sampled)
    }

    /// Reads the prompt, and after a device was lost also the tokens generated so far; then finds out which side chooses.
    async fn begin(&mut self) -> Result<(), EngineError> {
        if !matches!(self.chooser, Chooser::Unknown) {
            return Ok(());
        }
        let rows = StepRows { ids: &self.tokens, at: 0, media: &self.media };
        let rest = self.session.keep_common(rows);
        if self.generated() == 0 && self.recoveries == 0 {
            self.reused_tokens = self.tokens.len() - rest.len();
        }
        let unread = self.session.read_before_last(rest).await?;
        let choosing = Choosing {
            unread,
            tokens: &self.tokens,
            sampler: &self.sampler,
            most: self.most - self.generated(),
        };
        if self.session.state.begin(choosing).await? {
            self.session.has_read(unread);
            self.chooser = Chooser::Backend(None);
            // The backend may only have queued the prompt. It has read it once its first token arrives.
            let first = self.session.state.next_token().await?;
            self.chooser = Chooser::Backend(Some(first));
        } else {
            let logits = self.session.step(unread, LogitRows::Last).await?;
            self.chooser = Chooser::Sampler(Some(logits));
        }
        Ok(())
    }

    /// Makes it possible to continue after a device was lost or the conversation was evicted; gives every other error back.
    async fn recover(&mut self, error: EngineError) -> Result<(), EngineError> {
        // Making room for others is no failure, and may happen any number of times.
        let is_failure = !matches!(error, EngineError::Evicted);
        if (is_failure && self.recoveries == RECOVERIES) || !self.session.recover(&error).await? {
            return Err(error);
        }
        self.recoveries += u32::from(is_failure);
        // All tokens have to be read again. The sampler has used up the random numbers of those generated so far.
        self.chooser = Chooser::Unknown;
        Ok(())
    }

    async fn choose(&mut self) -> Result<Sampled, EngineError> {
        match &mut self.chooser {
            Chooser::Unknown => unreachable!("the prompt was just read"),
            Chooser::Backend(first) => {
                let id = match first.take() {
                    Some(id) => id,
                    None => self.session.state.next_token().await?,
                };
                // To choose this token, the backend has read the one before it.
                let rows = StepRows { ids: &self.tokens, at: 0, media: &self.media };
                self.session.has_read(rows.split_at(self.session.history().len()).1);
                self.sampler.skip();
                Ok(Sampled { id, logprob: None, top: Vec::new() })
            }
            Chooser::Sampler(logits) => {
                let logits = match logits {
                    Some(logits) => logits,
                    None => {
                        let rows = StepRows { ids: &self.tokens, at: 0, media: &self.media };
                        let rest = rows.split_at(self.session.history().len()).1;
                        logits.insert(self.session.read(rest).await?)
                    }
                };
                let sampled = self.sampler.sample(logits.last(), &self.tokens)?;
                self.chooser = Chooser::Sampler(None);
                Ok(sampled)
            }
        }
    }
}

/// The caller wants no more tokens, so the backend stops computing them.
impl Drop for TokenStream<'_> {
    fn drop(&mut self) {
        self.session.state.end();
    }
}
