//! Text out of token ids as they come.
//!
//! A character may be spread over several tokens. The decoder holds its bytes back until it is whole, or
//! until it is certain that it never will be.

use crate::{SpecialOutput, Tokenizer, TokenizerError};

/// Decodes ids one at a time.
///
/// The texts it returns, put together, are what [`Tokenizer::decode`] makes of all ids at once. It does
/// not hold on to the tokenizer, so that both can live in one value; push to one decoder with one
/// tokenizer.
#[derive(Debug, Clone, Default)]
pub struct StreamDecoder {
    special: SpecialOutput,
    /// The beginning of a character: at most three bytes between calls.
    pending: Vec<u8>,
    text: String,
}

impl StreamDecoder {
    /// A decoder that shows the special tokens asked for.
    pub fn new(special: SpecialOutput) -> Self {
        Self { special, ..Self::default() }
    }

    /// Adds a token and returns the text that is now certain, which may be empty.
    ///
    /// # Errors
    ///
    /// If there is no such token. The decoder is then as it was before.
    pub fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> Result<&str, TokenizerError> {
        let piece = tokenizer.piece(id, self.special)?;
        self.text.clear();
        self.pending.extend_from_slice(&piece);
        let mut rest = &self.pending[..];
        loop {
            match str::from_utf8(rest) {
                Ok(valid) => {
                    self.text.push_str(valid);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    self.text.push_str(&String::from_utf8_lossy(valid));
                    rest = after;
                    let Some(broken) = error.error_len() else { break };
                    self.text.push(char::REPLACEMENT_CHARACTER);
                    rest = &rest[broken..];
                }
            }
        }
        let emitted = self.pending.len() - rest.len();
        self.pending.drain(..emitted);
        Ok(&self.text)
    }

    /// Returns what is left at the end, with U+FFFD for a character that never became whole. The decoder
    /// is then ready for another text.
    pub fn finish(&mut self) -> &str {
        self.text.clear();
        self.text.push_str(&String::from_utf8_lossy(&self.pending));
        self.pending.clear();
        &self.text
    }

    /// Whether part of a character is held back.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }
}
