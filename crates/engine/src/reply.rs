//! One streamed answer.

use std::collections::VecDeque;

use rullama_chat::{Delta, Prompt, ReplyOptions, ReplyParser, ReplyParts};
use rullama_tokenizer::SpecialOutput;

use crate::{
    ChatOptions, EngineError, FinishReason, Generation, Session, Usage, generation::GenerationSetup,
};

/// A model's answer as it is written. Dropping it stops the model; what it had written stays in the
/// conversation.
pub struct Reply<'s> {
    generation: Option<Generation<'s>>,
    parser: Option<ReplyParser>,
    ready: VecDeque<Delta>,
    parts: ReplyParts,
    ids: Vec<u32>,
    /// Whether the reply becomes one of the session's messages.
    keep: bool,
}

impl<'s> Reply<'s> {
    pub(crate) fn new(
        session: &'s mut Session,
        prompt: Prompt,
        ids: Vec<u32>,
        options: &ChatOptions,
        keep: bool,
    ) -> Result<Self, EngineError> {
        let parser = ReplyParser::new(ReplyOptions {
            think: options.think,
            thought_open: prompt.thought_open,
            tools: &options.tools,
        });
        let guard = !options.generate.ignore_end;
        let setup = GenerationSetup { options: &options.generate, special: SpecialOutput::ForParser, guard };
        if let Err(error) = session.check_length(&ids, 1) {
            // The message that made the conversation too long is not part of it.
            if keep {
                session.messages.pop();
            }
            return Err(error);
        }
        let generation = Generation::new(session, ids, setup)?;
        Ok(Self {
            generation: Some(generation),
            parser: Some(parser),
            ready: VecDeque::new(),
            parts: ReplyParts::default(),
            ids: Vec::new(),
            keep,
        })
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
                    self.ids.push(token.sampled.id);
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

    /// The tokens generated so far.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Why it ended, once it has.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        self.generation.as_ref().and_then(Generation::finish_reason)
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
        if let Some(generation) = self.generation.take() {
            generation.into_session().messages.push(parts.into_message());
        }
    }
}
