//! The text of a reply: tokens become characters, and some texts end the reply.

use rullama_tokenizer::{SpecialOutput, StreamDecoder, Tokenizer, TokenizerError};

use crate::{Released, RepetitionGuard, StopStrings};

/// Makes text of tokens, and finds the places where the text ends the reply.
pub(crate) struct TextStream {
    decoder: StreamDecoder,
    stop: StopStrings,
    guard: Option<RepetitionGuard>,
}

/// The text that became certain with a token.
#[derive(Debug, Default)]
pub(crate) struct Text {
    /// It may be empty, and it may belong to earlier tokens.
    pub(crate) text: String,
    /// Whether a stop string follows it. Then the reply ends here, and no text is held back.
    pub(crate) stopped: bool,
    /// Whether the same piece of text has come too often, so that the reply should end.
    pub(crate) repeats: bool,
}

impl Text {
    fn add(&mut self, released: Released<'_>) {
        self.text.push_str(released.text);
        self.stopped |= released.stopped;
    }
}

impl TextStream {
    /// `guarded` says whether to look for repetition.
    pub(crate) fn new(special: SpecialOutput, stop: &[String], guarded: bool) -> Self {
        Self {
            decoder: StreamDecoder::new(special),
            stop: StopStrings::new(stop),
            guard: guarded.then(RepetitionGuard::default),
        }
    }

    /// Adds a token.
    pub(crate) fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> Result<Text, TokenizerError> {
        let piece = self.decoder.push(tokenizer, id)?;
        let repeats = self.guard.as_mut().is_some_and(|guard| guard.push(piece));
        let mut text = Text { repeats, ..Text::default() };
        text.add(self.stop.push(piece));
        Ok(text)
    }

    /// The text that was held back: an unfinished character, or the beginning of a stop string. It may complete one.
    pub(crate) fn finish(&mut self) -> Text {
        let mut text = Text::default();
        text.add(self.stop.push(self.decoder.finish()));
        text.add(self.stop.finish());
        text
    }
}
