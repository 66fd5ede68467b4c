//! The tokens: their texts, their kinds, and the way back from text to id.
//!
//! All texts lie in one buffer, and the index is one table of words that hold an id and a few bits of
//! hash, so that the 262,144 tokens of Gemma 4 take about 6 MiB.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::{TokenizerError, character::NONE};

/// Ids take this many bits in the tables of this crate.
pub(crate) const ID_BITS: u32 = 21;

/// As many tokens as ids fit their bits; eight times what Gemma 4 has.
pub(crate) const MAX_TOKENS: usize = 1 << ID_BITS;

const ID_MASK: u32 = (1 << ID_BITS) - 1;
const EMPTY: u32 = u32::MAX;

/// What kind of token an id stands for.
///
/// This is the file's `token_type` where the file is right. Two things go by text instead: `<0xHH>` is a
/// byte token whatever its type (Ollama's conversion marks it normal), and the special tokens of Gemma 4
/// are never normal (some conversions mark `<eos>` so).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenKind {
    /// A piece of text.
    Normal,
    /// The token for what no other token can express.
    Unknown,
    /// A marker, such as the beginning of a turn.
    Control,
    /// A marker that is cut out of text even where special tokens are text.
    UserDefined,
    /// A place without a meaning.
    Unused,
    /// One byte of a character that has no token.
    Byte,
}

impl TokenKind {
    /// The kind for a type number in a file. Zero, "undefined", is what absent types amount to.
    fn from_file(found: i32, id: u32) -> Result<Self, TokenizerError> {
        Ok(match found {
            0 | 1 => Self::Normal,
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            5 => Self::Unused,
            6 => Self::Byte,
            _ => return Err(TokenizerError::TokenType { id, found }),
        })
    }

    /// Whether tokens of this kind are special: found in text as a whole, and hidden in output.
    pub fn is_special(self) -> bool {
        matches!(self, Self::Unknown | Self::Control | Self::UserDefined)
    }
}

/// The special tokens of Gemma 4, by text.
const SPECIAL_TEXTS: [&str; 24] = [
    "<pad>",
    "<eos>",
    "<bos>",
    "<unk>",
    "<mask>",
    "<|tool>",
    "<tool|>",
    "<|tool_call>",
    "<tool_call|>",
    "<|tool_response>",
    "<tool_response|>",
    "<|\"|>",
    "<|think|>",
    "<|channel>",
    "<channel|>",
    "<|turn>",
    "<turn|>",
    "<|image>",
    "<image|>",
    "<|audio>",
    "<audio|>",
    "<|image|>",
    "<|audio|>",
    "<|video|>",
];

/// Texts and kinds of all tokens.
pub(crate) struct Vocabulary {
    texts: Vec<u8>,
    /// Where each text ends; it starts where the one before ends.
    ends: Vec<u32>,
    kinds: Vec<TokenKind>,
    /// Open addressing: eleven bits of hash above the id, so that most strangers are passed over without
    /// looking at their text.
    index: Vec<u32>,
    longest: usize,
    /// Whether some text is the text of two tokens.
    repeats: bool,
}

/// Refuses entries that were made to collide: with them, filling a table would take quadratic time. In real
/// vocabularies less than one place is taken on the way to a free one.
pub(crate) fn check_crowding(what: &'static str, steps: usize, entries: usize) -> Result<(), TokenizerError> {
    if steps / 64 > entries.max(1024) { Err(TokenizerError::Crowded { what }) } else { Ok(()) }
}

impl Vocabulary {
    /// Reads the tokens. `types` is empty, or has one entry for each token.
    ///
    /// Where two tokens have the same text, text becomes the later one, as in llama.cpp.
    pub(crate) fn new<'a>(
        tokens: impl Iterator<Item = &'a [u8]>,
        types: &[i32],
    ) -> Result<Self, TokenizerError> {
        let mut texts = Vec::new();
        let mut ends = Vec::with_capacity(tokens.size_hint().0.min(MAX_TOKENS));
        let mut longest = 0;
        for token in tokens {
            texts.extend_from_slice(token);
            longest = longest.max(token.len());
            let end = u32::try_from(texts.len()).map_err(|_| TokenizerError::TooLarge {
                what: "bytes of token text",
                found: texts.len(),
                limit: u32::MAX as usize,
            })?;
            if ends.len() == MAX_TOKENS {
                return Err(TokenizerError::TooLarge {
                    what: "tokens",
                    found: ends.len() + 1,
                    limit: MAX_TOKENS,
                });
            }
            ends.push(end);
        }
        if ends.is_empty() {
            return Err(TokenizerError::EmptyVocabulary);
        }
        if !types.is_empty() && types.len() != ends.len() {
            return Err(TokenizerError::TypeCount { found: types.len(), expected: ends.len() });
        }
        texts.shrink_to_fit();
        ends.shrink_to_fit();

        let places = (ends.len() * 2).next_power_of_two();
        let mut vocabulary =
            Self { texts, ends, kinds: Vec::new(), index: vec![EMPTY; places], longest, repeats: false };
        let mut steps = 0;
        for id in 0..vocabulary.len() as u32 {
            steps += vocabulary.enter(id);
            check_crowding("tokens", steps, vocabulary.len())?;
        }
        vocabulary.read_kinds(types)?;
        Ok(vocabulary)
    }

    /// Puts a token in its place, and tells how many places were taken before it was found.
    fn enter(&mut self, id: u32) -> usize {
        let (mut place, tag) = self.place(self.text(id));
        for steps in 0.. {
            let entry = self.index[place];
            if entry == EMPTY || (entry >> ID_BITS == tag && self.text(entry & ID_MASK) == self.text(id)) {
                self.repeats |= entry != EMPTY;
                self.index[place] = tag << ID_BITS | id;
                return steps;
            }
            place = (place + 1) & (self.index.len() - 1);
        }
        unreachable!("the table is twice as large as the vocabulary")
    }

    fn read_kinds(&mut self, types: &[i32]) -> Result<(), TokenizerError> {
        let mut kinds = Vec::with_capacity(self.len());
        for id in 0..self.len() as u32 {
            let in_file = match types.get(id as usize) {
                Some(&found) => TokenKind::from_file(found, id)?,
                None => TokenKind::Normal,
            };
            kinds.push(match byte_value(self.text(id)) {
                Some(_) => TokenKind::Byte,
                // A byte token that names no byte is shown as it is written.
                None if in_file == TokenKind::Byte => TokenKind::Normal,
                None => in_file,
            });
        }
        for text in SPECIAL_TEXTS {
            if let Some(id) = self.id(text.as_bytes())
                && !kinds[id as usize].is_special()
            {
                kinds[id as usize] = TokenKind::Control;
            }
        }
        self.kinds = kinds;
        Ok(())
    }

    #[inline]
    fn place(&self, text: &[u8]) -> (usize, u32) {
        let mut hasher = FxHasher::default();
        hasher.write(text);
        let hash = hasher.finish();
        // The tag stops one short of all ones: with the id, it must never read as EMPTY.
        let tag = ((hash >> 20) as u32 & 0x7FF).min(0x7FE);
        (hash as usize & (self.index.len() - 1), tag)
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The text of a token as the file writes it; `id` must be in range.
    #[inline]
    pub(crate) fn text(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let start = if id == 0 { 0 } else { self.ends[id - 1] as usize };
        &self.texts[start..self.ends[id] as usize]
    }

    /// How many characters a token's text has; `id` must be in range.
    pub(crate) fn characters(&self, id: u32) -> usize {
        self.text(id).iter().filter(|&&byte| byte & 0xC0 != 0x80).count()
    }

    /// The kind of a token; `id` must be in range.
    #[inline]
    pub(crate) fn kind(&self, id: u32) -> TokenKind {
        self.kinds[id as usize]
    }

    pub(crate) fn kinds(&self) -> &[TokenKind] {
        &self.kinds
    }

    /// The token with exactly this text.
    #[inline]
    pub(crate) fn id(&self, text: &[u8]) -> Option<u32> {
        if text.len() > self.longest {
            return None;
        }
        let (mut place, tag) = self.place(text);
        loop {
            let entry = self.index[place];
            if entry == EMPTY {
                return None;
            }
            if entry >> ID_BITS == tag && self.text(entry & ID_MASK) == text {
                return Some(entry & ID_MASK);
            }
            place = (place + 1) & (self.index.len() - 1);
        }
    }

    /// The token with exactly this text, if it is `hint` or the one after it, or else wherever it is.
    pub(crate) fn id_near(&self, hint: u32, text: &[u8]) -> Option<u32> {
        let mut near = (hint..self.len().min(hint as usize + 2) as u32).filter(|_| !self.repeats);
        near.find(|&id| self.text(id) == text).or_else(|| self.id(text))
    }

    /// The tokens with these texts, as [`Vocabulary::id`] would find them.
    ///
    /// A lookup waits for memory three times in a row. Here each wait is shared by all texts: one pass
    /// reads the index, one reads where texts lie, and the last finds everything close at hand.
    pub(crate) fn ids(&self, texts: &[&[u8]], ids: &mut Vec<Option<u32>>) {
        ids.clear();
        ids.extend(texts.iter().map(|text| {
            let (place, tag) = self.place(text);
            let entry = self.index[place];
            (entry >> ID_BITS == tag).then_some(entry & ID_MASK)
        }));
        // What the first place of a text suggests, and whether it is as long as the text.
        for (id, text) in ids.iter_mut().zip(texts) {
            *id = id.filter(|&id| self.text(id).len() == text.len());
        }
        for (id, text) in ids.iter_mut().zip(texts) {
            *id = match *id {
                Some(id) if self.text(id) == *text => Some(id),
                _ => self.id(text),
            };
        }
    }

    /// The token for each byte, or `NONE`.
    pub(crate) fn byte_tokens(&self) -> [u32; 256] {
        std::array::from_fn(|byte| self.id(format!("<0x{byte:02X}>").as_bytes()).unwrap_or(NONE))
    }

    pub(crate) fn memory(&self) -> usize {
        self.texts.capacity() + 4 * (self.ends.capacity() + self.index.capacity()) + self.kinds.capacity()
    }
}

/// The byte that a text such as `<0x0A>` names: two digits, upper case.
pub(crate) fn byte_value(text: &[u8]) -> Option<u8> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    };
    match *text {
        [b'<', b'0', b'x', high, low, b'>'] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    }
}
