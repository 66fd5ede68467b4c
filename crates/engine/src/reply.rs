//! One streamed answer.

use std::collections::VecDeque;

use rullama_chat::{Delta, Message, Prompt, ReplyOptions, ReplyParser, ReplyParts};
use rullama_tokenizer::SpecialOutput;

use crate::{
    ChatOptions, EngineError, FinishReason, Generation, Sampled, Session, Usage, generation::GenerationSetup,
};

/// A model's answer as it is written. Dropping it stops the model; what it had written stays in the
/// conversation.
pub struct Reply<'s> {
    generation: Option<Generation<'s>>,
    parser: Option<ReplyParser>,
    ready: VecDeque<Delta>,
    parts: ReplyParts,
    tokens: Vec<Sampled>,
    /// Whether the reply becomes one of the session's messages.
    keep: bool,
}

impl<'s> Reply<'s> {
    pub(crate) fn new(
        session: &'s mut Session,
        prompt: Prompt,
        ids: Vec<u32>,
        options: &ChatOptions,
    ) -> Result<Self, EngineError> {
        let parser = ReplyParser::new(ReplyOptions {
            think: options.think,
            thought_open: prompt.thought_open,
            tools: &options.tools,
        });
        let guard = !options.generate.ignore_end;
        let setup = GenerationSetup { options: &options.generate, special: SpecialOutput::ForParser, guard };
        let generation = Generation::new(session, ids, setup)?;
        Ok(Self {
            generation: Some(generation),
            parser: Some(parser),
            ready: VecDeque::new(),
            parts: ReplyParts::default(),
            tokens: Vec::new(),
            keep: false,
        })
    }

    /// Makes the message that is answered, and in the end the answer, part of the session's conversation.
    pub(crate) fn keep_after(&mut self, message: Message) {
        if let Some(generation) = &mut self.generation {
            generation.session_mut().messages.push(message);
            self.keep = true;
        }
    }

    /// Reads the prompt. [`next`](Self::next) does the same when it was not done before.
    pub async fn read_prompt(&mut self) -> Result<(), EngineError> {
        match &mut self.generation {
            Some(generation) => generation.read_prompt().await,
            None => Ok(()),
        }
    }

    /// The next part of the answer, or nothing when it is complete.
    pub async fn next(&mut self) -> Option<Result<Delta, EngineError>> {
        loop {
            if let Some(delta) = self.ready.pop_front() {
                self.parts.push(delta.clone());
                return Some(Ok(delta));
            }
            let (Some(parser), Some(generation)) = (&mut self.parser, &mut self.generation) else {
                return None;
            };
            match generation.next().await {
                Some(Ok(token)) => {
                    self.tokens.push(token.sampled);
                    self.ready.extend(parser.push(&token.text));
                }
                Some(Err(error)) => {
                    self.parser = None;
                    return Some(Err(error));
                }
                None => self.ready.extend(self.parser.take().into_iter().flat_map(ReplyParser::finish)),
            }
        }
    }

    /// The answer so far, in parts.
    pub fn parts(&self) -> &ReplyParts {
        &self.parts
    }

    /// The tokens generated so far, with log-probabilities where these were asked for.
    pub fn tokens(&self) -> &[Sampled] {
        &self.tokens
    }

    /// The ids of the tokens generated so far.
    pub fn ids(&self) -> Vec<u32> {
        self.tokens.iter().map(|token| token.id).collect()
    }

    /// Why it ended, once it has.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        self.generation.as_ref().and_then(Generation::finish_reason)
    }

    /// The seed of its random numbers, as [`Generation::seed`] has it.
    pub fn seed(&self) -> u64 {
        self.generation.as_ref().map_or(0, Generation::seed)
    }

    /// What it cost so far.
    pub fn usage(&self) -> Usage {
        self.generation.as_ref().map(Generation::usage).unwrap_or_default()
    }
}

impl Drop for Reply<'_> {
    fn drop(&mut self) {
        if !self.keep {
            return;
        }
        // What was held back belongs to what was written.
        let rest = self.parser.take().into_iter().flat_map(ReplyParser::finish);
        self.parts.extend(self.ready.drain(..).chain(rest));
        let parts = std::mem::take(&mut self.parts);
        // Stopped before it had said anything, it said nothing.
        if parts != ReplyParts::default()
            && let Some(generation) = self.generation.take()
        {
            generation.into_session().messages.push(parts.into_message());
        }
    }
}
