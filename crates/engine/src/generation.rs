//! A continuation of tokens, with its text and its end.

use rullama_tokenizer::SpecialOutput;

use crate::{
    EngineError, GenerateOptions, PromptRows, Sampled, Session, text::TextStream, tokens::TokenStream,
};

/// Why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FinishReason {
    /// The model ended it, or a stop string did.
    Stop,
    /// It has as many tokens as were asked for, or as the context has room for.
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

/// The number of tokens that a reply took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Tokens of the prompt that the session had read before.
    pub reused_tokens: usize,
    /// Tokens generated, including the one that ended the reply.
    pub generated_tokens: usize,
}

/// A generated token.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    /// The token, with log-probabilities if the options ask for them.
    pub sampled: Sampled,
    /// The text that became certain with it. It may be empty, and it may be that of earlier tokens.
    pub text: String,
}

/// How tokens are generated.
pub(crate) struct GenerationSetup<'a> {
    pub(crate) options: &'a GenerateOptions,
    pub(crate) special: SpecialOutput,
    /// Whether a reply ends that repeats one piece of text without end.
    pub(crate) guarded: bool,
}

/// A continuation, token by token. Dropping it ends the generation and leaves the session valid.
pub struct Generation<'s> {
    stream: TokenStream<'s>,
    text: TextStream,
    generated: Vec<Sampled>,
    ignore_end: bool,
    finished: Option<FinishReason>,
}

impl<'s> Generation<'s> {
    pub(crate) fn new(
        session: &'s mut Session,
        prompt: PromptRows,
        setup: GenerationSetup<'_>,
    ) -> Result<Self, EngineError> {
        let GenerationSetup { options, special, guarded } = setup;
        Ok(Self {
            stream: TokenStream::new(session, prompt, &options.sampling, options.max_tokens)?,
            text: TextStream::new(special, &options.stop, guarded),
            generated: Vec::new(),
            ignore_end: options.ignore_end,
            finished: None,
        })
    }

    /// Makes this the rest of a generation that another engine began with the same prompt, options and
    /// [`seed`](Self::seed): `ids` are the tokens that it generated. [`next`](Self::next) gives them first.
    pub fn resume(&mut self, ids: &[u32]) {
        self.stream.resume(ids);
    }

    /// Reads the prompt, except for a beginning that the session has read before, and waits until it has been read.
    /// [`next`](Self::next) does the same if the caller did not.
    pub async fn read_prompt(&mut self) -> Result<(), EngineError> {
        self.stream.read_prompt().await
    }

    /// The next token, or nothing when the reply has ended.
    pub async fn next(&mut self) -> Option<Result<Token, EngineError>> {
        if self.finished.is_none() && self.stream.is_full() {
            self.finished = Some(FinishReason::Length);
        }
        if self.finished.is_some() {
            return None;
        }
        Some(self.advance().await)
    }

    pub(crate) fn session_mut(&mut self) -> &mut Session {
        self.stream.session_mut()
    }

    /// The tokens generated so far, with log-probabilities if the options ask for them.
    pub fn tokens(&self) -> &[Sampled] {
        &self.generated
    }

    /// The ids of the tokens generated so far.
    pub fn ids(&self) -> Vec<u32> {
        self.generated.iter().map(|token| token.id).collect()
    }

    /// Why it ended, once it has.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        self.finished
    }

    /// The seed of its random numbers: the one in its options, or the one that the engine chose. The same prompt and
    /// options with this seed give the same tokens again.
    pub fn seed(&self) -> u64 {
        self.stream.seed()
    }

    /// The number of tokens that it took so far.
    pub fn usage(&self) -> Usage {
        Usage {
            prompt_tokens: self.stream.prompt_tokens(),
            reused_tokens: self.stream.reused_tokens(),
            generated_tokens: self.stream.generated(),
        }
    }

    async fn advance(&mut self) -> Result<Token, EngineError> {
        let sampled = self.stream.next().await?;
        self.generated.push(sampled.clone());
        let tokenizer = self.stream.session().engine.tokenizer();
        let mut text = String::new();
        let mut stopped = false;
        if !self.ignore_end && tokenizer.is_end(sampled.id) {
            self.finished = Some(FinishReason::Stop);
        } else {
            let new = self.text.push(tokenizer, sampled.id)?;
            (text, stopped) = (new.text, new.stopped);
            if new.stopped || new.repeats {
                self.finished = Some(FinishReason::Stop);
            } else if self.stream.is_full() {
                self.finished = Some(FinishReason::Length);
            }
        }
        if self.finished.is_some() && !stopped {
            // Text that was held back belongs to the reply, up to a stop string that it completes.
            let rest = self.text.finish();
            text.push_str(&rest.text);
            if rest.stopped {
                self.finished = Some(FinishReason::Stop);
            }
        }
        Ok(Token { sampled, text })
    }
}
