//! Token ids to text.

use std::borrow::Cow;

use crate::{TokenKind, Tokenizer, TokenizerError, character::SPACE_MARK_UTF8, vocabulary::byte_value};

/// Which special tokens show in output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SpecialOutput {
    /// None of them.
    #[default]
    Hidden,
    /// Those that tell thoughts, tool calls and quoted strings apart, which a reply parser needs:
    /// `<|channel>`, `<channel|>`, `<|tool_call>`, `<tool_call|>`, `<|tool_response>` and `<|"|>`.
    ForParser,
    /// All of them, so that decoding gives back the text that was encoded.
    All,
}

impl Tokenizer {
    /// The bytes that a token contributes to output: a byte token its byte, a special token its text or
    /// nothing, any other its text with spaces for U+2581. They need not be whole characters.
    ///
    /// # Errors
    ///
    /// If there is no such token.
    pub fn piece(&self, id: u32, special: SpecialOutput) -> Result<Cow<'_, [u8]>, TokenizerError> {
        if !self.has(id) {
            return Err(TokenizerError::UnknownId { id, tokens: self.len() });
        }
        let text = self.vocabulary.text(id);
        Ok(match self.vocabulary.kind(id) {
            TokenKind::Byte => match byte_value(text) {
                Some(byte) => Cow::Owned(vec![byte]),
                None => Cow::Borrowed(text),
            },
            kind if kind.is_special() => {
                let shown = match special {
                    SpecialOutput::Hidden => false,
                    SpecialOutput::ForParser => self.for_parser.contains(&id),
                    SpecialOutput::All => true,
                };
                Cow::Borrowed(if shown { text } else { b"" })
            }
            _ => with_spaces(text),
        })
    }

    /// The bytes of `ids`, which need not be UTF-8.
    ///
    /// # Errors
    ///
    /// If there is no token for one of the ids.
    pub fn decode_bytes(&self, ids: &[u32], special: SpecialOutput) -> Result<Vec<u8>, TokenizerError> {
        let mut bytes = Vec::with_capacity(ids.len() * 4);
        for &id in ids {
            bytes.extend_from_slice(&self.piece(id, special)?);
        }
        Ok(bytes)
    }

    /// The text of `ids`. What is not UTF-8 becomes U+FFFD.
    ///
    /// # Errors
    ///
    /// If there is no token for one of the ids.
    pub fn decode(&self, ids: &[u32], special: SpecialOutput) -> Result<String, TokenizerError> {
        let bytes = self.decode_bytes(ids, special)?;
        Ok(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        })
    }
}

/// `text` with every U+2581 replaced by a space.
fn with_spaces(text: &[u8]) -> Cow<'_, [u8]> {
    // Most tokens have the mark at the front or not at all; 0xE2 is rare otherwise.
    if memchr::memchr(SPACE_MARK_UTF8[0], text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        match rest.strip_prefix(SPACE_MARK_UTF8) {
            Some(after_mark) => {
                bytes.push(b' ');
                rest = after_mark;
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    Cow::Owned(bytes)
}

#[cfg(test)]
mod tests {
    use super::with_spaces;

    #[test]
    fn marks_become_spaces() {
        for (text, expected) in
            [("▁the", " the"), ("▁▁", "  "), ("a▁b", "a b"), ("plain", "plain"), ("≥", "≥"), ("", "")]
        {
            assert_eq!(with_spaces(text.as_bytes()), expected.as_bytes());
        }
    }
}
