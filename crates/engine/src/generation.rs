//! Token by token: read the prompt, choose, read what was chosen.

use rullama_tokenizer::{SpecialOutput, StreamDecoder};

use crate::{
    Choosing, EngineError, GenerateOptions, Logits, Released, RepetitionGuard, Sampled, Sampler,
    SamplingOptions, Session, StopStrings,
};

/// How often a reply survives the loss of what computes it. What is lost again and again will not be there for long.
const RECOVERIES: u32 = 2;

/// Why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FinishReason {
    /// The model ended it, or a stop string did.
    Stop,
    /// There was no room for more, or no more was asked for.
    Length,
}

impl FinishReason {
    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
        }
    }
}

/// What a reply cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// How many of them had been read before.
    pub reused_tokens: usize,
    /// Tokens generated, the one that ended the reply included.
    pub generated_tokens: usize,
}

/// A generated token.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    /// The token, with log-probabilities where these were asked for.
    pub sampled: Sampled,
    /// The text that became certain with it. It may be empty, and it may be that of earlier tokens.
    pub text: String,
}

/// How tokens are generated.
pub(crate) struct GenerationSetup<'a> {
    pub(crate) options: &'a GenerateOptions,
    pub(crate) special: SpecialOutput,
    /// Whether a reply that goes round in circles is ended.
    pub(crate) guard: bool,
}

/// Tokens as they are generated. Dropping it ends the generation and leaves the session valid.
pub struct Generation<'s> {
    session: &'s mut Session,
    /// The prompt, and what was generated after it.
    tokens: Vec<u32>,
    sampler: Sampler,
    decoder: StreamDecoder,
    stop: StopStrings,
    guard: Option<RepetitionGuard>,
    max_tokens: usize,
    ignore_end: bool,
    /// Whether whoever computes the logits chooses the tokens, too.
    on_device: bool,
    options: SamplingOptions,
    seed: u64,
    /// The logits of the last token read, until they are used.
    logits: Option<Logits>,
    /// The token that the device chose after the prompt, until it is asked for.
    first: Option<u32>,
    /// A chosen token that has not been read yet.
    unread: Option<u32>,
    finished: Option<FinishReason>,
    usage: Usage,
    recoveries: u32,
}

impl<'s> Generation<'s> {
    pub(crate) fn new(
        session: &'s mut Session,
        prompt: Vec<u32>,
        setup: GenerationSetup<'_>,
    ) -> Result<Self, EngineError> {
        session.check_length(&prompt, 1)?;
        let GenerationSetup { options, special, guard } = setup;
        let room = session.engine.context() - prompt.len();
        let seed = session.next_seed();
        let suppressed = session.engine.tokenizer().suppressed_tokens();
        Ok(Self {
            sampler: Sampler::new(&options.sampling, suppressed, seed)?,
            decoder: StreamDecoder::new(special),
            stop: StopStrings::new(&options.stop),
            guard: guard.then(RepetitionGuard::default),
            max_tokens: options.max_tokens.map_or(room, |most| room.min(most as usize)),
            ignore_end: options.ignore_end,
            on_device: false,
            options: options.sampling.clone(),
            seed,
            logits: None,
            first: None,
            unread: None,
            finished: None,
            usage: Usage { prompt_tokens: prompt.len(), ..Usage::default() },
            recoveries: 0,
            session,
            tokens: prompt,
        })
    }

    /// Reads the prompt, of which the session may know the beginning, and waits until it has been read.
    /// [`next`](Self::next) does the same when it was not done before.
    pub async fn read_prompt(&mut self) -> Result<(), EngineError> {
        while let Err(error) = self.read_tokens().await {
            self.recover(error).await?;
        }
        Ok(())
    }

    /// Reads the prompt; and after what computes it was lost, also what was generated since.
    async fn read_tokens(&mut self) -> Result<(), EngineError> {
        if self.on_device || self.logits.is_some() || self.unread.is_some() {
            return Ok(());
        }
        let generated = self.usage.generated_tokens;
        let rest = self.session.keep_common(&self.tokens);
        if generated == 0 && self.recoveries == 0 {
            self.usage.reused_tokens = self.tokens.len() - rest.len();
        }
        let choosing = Choosing {
            rest,
            tokens: &self.tokens,
            options: &self.options,
            suppressed: self.session.engine.inner.tokenizer.suppressed_tokens(),
            seed: self.seed,
            drawn: generated,
            most: self.max_tokens - generated,
        };
        self.on_device = self.session.state.begin(choosing).await?;
        if self.on_device {
            self.session.has_read(rest);
            // Once the first token is there, the prompt has been read; before, it may only have been handed over.
            self.first = Some(self.session.state.next_token().await?);
        } else {
            self.logits = Some(self.session.read(rest).await?);
        }
        Ok(())
    }

    /// Makes it possible to go on after an error that says that the device is gone; gives other errors back.
    async fn recover(&mut self, error: EngineError) -> Result<(), EngineError> {
        if self.recoveries == RECOVERIES || !self.session.recover(&error).await? {
            return Err(error);
        }
        self.recoveries += 1;
        // Everything is to be read again; the sampler still knows where its random numbers are.
        (self.on_device, self.logits, self.first, self.unread) = (false, None, None, None);
        Ok(())
    }

    /// The next token, or nothing when the reply has ended.
    pub async fn next(&mut self) -> Option<Result<Token, EngineError>> {
        if self.finished.is_some() {
            return None;
        }
        if self.max_tokens == 0 {
            self.finished = Some(FinishReason::Length);
            return None;
        }
        Some(self.advance().await)
    }

    pub(crate) fn session_mut(&mut self) -> &mut Session {
        self.session
    }

    /// The session, with the conversation as far as it got.
    pub(crate) fn into_session(self) -> &'s mut Session {
        self.session
    }

    /// Why it ended, once it has.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        self.finished
    }

    /// The seed of its random numbers: the one in its options, or the one that the session chose. The same prompt and
    /// options with this seed give the same tokens again.
    pub fn seed(&self) -> u64 {
        self.sampler.seed()
    }

    /// What it cost so far.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The next token that the device has chosen.
    async fn chosen(&mut self) -> Result<Sampled, EngineError> {
        let id = match self.first.take() {
            Some(id) => id,
            None => self.session.state.next_token().await?,
        };
        // Whoever chose this one had read the one before.
        if let Some(read) = self.unread.take() {
            self.session.has_read(&[read]);
        }
        Ok(Sampled { id, logprob: None, top: Vec::new() })
    }

    /// Reads the last token chosen and chooses the next.
    async fn choose(&mut self) -> Result<Sampled, EngineError> {
        if let Some(id) = self.unread {
            self.logits = Some(self.session.step(&[id], false).await?);
            self.unread = None;
        }
        let Some(logits) = self.logits.take() else { unreachable!("something was just read") };
        Ok(self.sampler.sample(logits.last(), &self.session.history)?)
    }

    /// The next token, from whoever chooses it.
    async fn sample(&mut self) -> Result<Sampled, EngineError> {
        loop {
            self.read_prompt().await?;
            match if self.on_device { self.chosen().await } else { self.choose().await } {
                Ok(sampled) => return Ok(sampled),
                Err(error) => self.recover(error).await?,
            }
        }
    }

    async fn advance(&mut self) -> Result<Token, EngineError> {
        let sampled = self.sample().await?;
        let id = sampled.id;
        self.unread = Some(id);
        self.tokens.push(id);
        self.usage.generated_tokens += 1;

        let tokenizer = self.session.engine.tokenizer();
        let ends = !self.ignore_end && tokenizer.is_end(id);
        let piece = if ends { "" } else { self.decoder.push(tokenizer, id)? };
        let in_circles = self.guard.as_mut().is_some_and(|guard| !ends && guard.push(piece));
        let released = self.stop.push(piece);
        let (mut text, stopped) = (released.text.to_owned(), released.stopped);
        if ends || stopped || in_circles {
            self.finished = Some(FinishReason::Stop);
        } else if self.usage.generated_tokens == self.max_tokens {
            self.finished = Some(FinishReason::Length);
        }
        if self.finished.is_some() && !stopped {
            // What had been held back is text after all, unless it completes a stop string.
            let rest = self.decoder.finish().to_owned();
            let mut ended = false;
            let mut take = |released: Released<'_>| {
                text.push_str(released.text);
                ended |= released.stopped;
            };
            take(self.stop.push(&rest));
            take(self.stop.finish());
            if ended {
                self.finished = Some(FinishReason::Stop);
            }
        }
        Ok(Token { sampled, text })
    }
}
