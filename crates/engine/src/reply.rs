//! One streamed answer.

use std::collections::VecDeque;

use rullama_chat::{Delta, Message, Prompt, ReplyOptions, ReplyParser, ReplyParts};
use rullama_tokenizer::SpecialOutput;

use crate::{
    ChatOptions, EngineError, FinishReason, Generation, Media, PromptRows, Sampled, Session, Usage,
    generation::GenerationSetup,
};

/// A model's answer while the model writes it: a [`Generation`] whose text is parsed into answer, thought and tool
/// calls. Dropping it stops the model; the answer so far stays in the conversation.
pub struct Reply<'s> {
    generation: Generation<'s>,
    /// None once the whole text has been parsed.
    parser: Option<ReplyParser>,
    /// Parsed deltas that the caller has not asked for yet.
    ready: VecDeque<Delta>,
    parts: ReplyParts,
    /// Whether the reply becomes one of the session's messages.
    keep: bool,
}

impl<'s> Reply<'s> {
    pub(crate) fn new(
        session: &'s mut Session,
        prompt: Prompt,
        rows: PromptRows,
        options: &ChatOptions,
    ) -> Result<Self, EngineError> {
        let parser = ReplyParser::new(ReplyOptions {
            think: options.think,
            thought_open: prompt.thought_open,
            tools: &options.tools,
        });
        let setup = GenerationSetup {
            options: &options.generate,
            special: SpecialOutput::ForParser,
            guarded: !options.generate.ignore_end,
        };
        Ok(Self {
            generation: Generation::new(session, rows, setup)?,
            parser: Some(parser),
            ready: VecDeque::new(),
            parts: ReplyParts::default(),
            keep: false,
        })
    }

    /// Adds the message that this reply answers to the session's conversation, and in the end the reply as well.
    pub(crate) fn keep_after(&mut self, message: Message, media: Media) {
        self.generation.session_mut().add(message, media);
        self.keep = true;
    }

    /// Makes this the rest of a reply that another engine began, as [`Generation::resume`] does.
    pub fn resume(&mut self, ids: &[u32]) {
        self.generation.resume(ids);
    }

    /// Reads the prompt. [`next`](Self::next) does the same if the caller did not.
    pub async fn read_prompt(&mut self) -> Result<(), EngineError> {
        self.generation.read_prompt().await
    }

    /// The next part of the answer, or nothing when it is complete.
    pub async fn next(&mut self) -> Option<Result<Delta, EngineError>> {
        loop {
            if let Some(delta) = self.ready.pop_front() {
                self.parts.push(delta.clone());
                return Some(Ok(delta));
            }
            let parser = self.parser.as_mut()?;
            match self.generation.next().await {
                Some(Ok(token)) => self.ready.extend(parser.push(&token.text)),
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

    /// The stream of tokens that this answer is parsed from.
    pub fn generation(&self) -> &Generation<'s> {
        &self.generation
    }

    /// The tokens generated so far, with log-probabilities if the options ask for them.
    pub fn tokens(&self) -> &[Sampled] {
        self.generation.tokens()
    }

    /// The ids of the tokens generated so far.
    pub fn ids(&self) -> Vec<u32> {
        self.generation.ids()
    }

    /// Why it ended, once it has.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        self.generation.finish_reason()
    }

    /// The seed of its random numbers, as [`Generation::seed`] gives it.
    pub fn seed(&self) -> u64 {
        self.generation.seed()
    }

    /// The number of tokens that it took so far.
    pub fn usage(&self) -> Usage {
        self.generation.usage()
    }
}

impl Drop for Reply<'_> {
    fn drop(&mut self) {
        if !self.keep {
            return;
        }
        // The parser may hold text back, which is part of the reply.
        let rest = self.parser.take().into_iter().flat_map(ReplyParser::finish);
        self.parts.extend(self.ready.drain(..).chain(rest));
        let parts = std::mem::take(&mut self.parts);
        // A reply that was stopped before its first word leaves no message.
        if parts != ReplyParts::default() {
            self.generation.session_mut().messages.push(parts.into_message());
        }
    }
}
