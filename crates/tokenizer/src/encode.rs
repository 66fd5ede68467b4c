//! Text to token ids.
//!
//! Special tokens are cut out first. The text between them falls into pieces that no merge can join
//! ([`crate::boundary`]); each piece becomes one symbol per character, and its symbols are merged
//! ([`crate::merge`]). Pieces met before are copied ([`crate::cache`]).

use crate::{
    Tokenizer,
    cache::Cache,
    character::{BROKEN, NONE, SPACE_MARK_UTF8, character_at},
    merge::{self, LongMerger, Symbols, WINDOW},
    merges::NO_RANK,
};

/// What the text of a special token means in input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SpecialInput {
    /// The special token itself: `<turn|>` ends a turn, whoever wrote it. Prompts are encoded like this.
    #[default]
    Parse,
    /// Plain text, except for tokens whose type in the file is "user-defined" (4), which are cut out here
    /// as well. That is the rule of llama.cpp, whose conversion gives this type to the markers of channels,
    /// tool calls and quoted strings; a file in which all special tokens have the type "control" (3) has no
    /// exceptions.
    Text,
}

/// How to encode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct EncodeOptions {
    /// What the text of a special token means.
    pub special: SpecialInput,
    /// Whether the ids begin with `<bos>`. There will be one even if the text begins with one already.
    pub bos: bool,
}

impl EncodeOptions {
    /// For prompts: special tokens are parsed, and the ids begin with `<bos>`.
    pub const PROMPT: Self = Self { special: SpecialInput::Parse, bos: true };

    /// For a part of a prompt, or to count tokens: special tokens are parsed, and nothing is added.
    pub const PART: Self = Self { special: SpecialInput::Parse, bos: false };

    /// For text that should not be able to speak for the prompt: special tokens are text.
    pub const TEXT: Self = Self { special: SpecialInput::Text, bos: false };
}

impl Tokenizer {
    /// The ids of `text`.
    pub fn encode(&self, text: &str, options: EncodeOptions) -> Vec<u32> {
        self.encode_bytes(text.as_bytes(), options)
    }

    /// The ids of `text`, which need not be UTF-8.
    ///
    /// A lead byte takes as many bytes as it announces, a byte that cannot lead stands alone, and what does
    /// not form a character becomes byte tokens, so that the bytes can be had back.
    pub fn encode_bytes(&self, text: &[u8], options: EncodeOptions) -> Vec<u32> {
        let special = match options.special {
            SpecialInput::Parse => &self.special,
            SpecialInput::Text => &self.user_defined,
        };
        let mut encoder = Encoder::new(self, text.len());
        if options.bos {
            encoder.out.push(self.bos());
        }
        let mut at = 0;
        for found in special.find(text) {
            encoder.text(&text[at..found.start]);
            at = found.end;
            let repeated = options.bos && found.start == 0 && found.id == self.bos();
            if !repeated {
                encoder.out.push(found.id);
            }
        }
        encoder.text(&text[at..]);
        encoder.out
    }
}

/// One encoding under way.
struct Encoder<'t> {
    tokenizer: &'t Tokenizer,
    pieces: Cache<u8>,
    ids: Vec<u32>,
    ranks: Vec<u32>,
    long: LongMerger<'t>,
    out: Vec<u32>,
}

impl<'t> Encoder<'t> {
    fn new(tokenizer: &'t Tokenizer, length: usize) -> Self {
        Self {
            tokenizer,
            pieces: Cache::new(length),
            ids: Vec::new(),
            ranks: Vec::new(),
            long: LongMerger::new(&tokenizer.merges, &tokenizer.vocabulary, length),
            // Prose takes about four bytes to a token.
            out: Vec::with_capacity(length / 4 + 1),
        }
    }

    /// Encodes text without special tokens.
    fn text(&mut self, text: &[u8]) {
        let mut at = 0;
        while at < text.len() {
            let end = self.tokenizer.boundaries.piece_end(text, at);
            self.piece(&text[at..end]);
            at = end;
        }
    }

    #[inline]
    fn piece(&mut self, piece: &[u8]) {
        // A byte beyond ASCII is a broken character when alone, not the character of its number.
        if let [byte @ ..0x80] = *piece {
            let id = self.tokenizer.characters.get(u32::from(byte));
            if id != NONE {
                return self.out.push(id);
            }
        }
        match self.pieces.get(piece) {
            Ok(tokens) => self.out.extend_from_slice(tokens),
            Err(slot) => {
                let first = self.out.len();
                self.merge(piece);
                if let Some(slot) = slot {
                    self.pieces.put(slot, piece, &self.out[first..]);
                }
            }
        }
    }

    fn merge(&mut self, piece: &[u8]) {
        // A run of newlines is one token where there is such a token, whatever the merges say.
        if piece[0] == b'\n'
            && let Some(id) = self.tokenizer.vocabulary.id(piece)
        {
            return self.out.push(id);
        }
        let Tokenizer { characters, merges, .. } = self.tokenizer;
        let mut at = 0;
        let mut left = BROKEN;
        while at < piece.len() {
            let (character, length) = character_at(piece, at);
            let id = characters.get(character);
            if id == NONE {
                self.merge_symbols();
                self.bytes(&piece[at..at + length]);
            } else {
                // The rank of the symbol before with this one; for the first symbol, of no use to anyone.
                let rank = match self.ids.last() {
                    Some(_) if left < 128 && character < 128 => merges.ascii_rank(left, character),
                    Some(&before) => merges.rank(before, id),
                    None => NO_RANK,
                };
                self.ranks.push(rank);
                self.ids.push(id);
            }
            left = character;
            at += length;
        }
        self.merge_symbols();
    }

    /// Merges the collected symbols and forgets them.
    fn merge_symbols(&mut self) {
        if let [_, ranks @ ..] = &self.ranks[..] {
            let symbols = Symbols { ids: &self.ids, ranks };
            if self.ids.len() <= WINDOW {
                merge::short(&self.tokenizer.merges, symbols, &mut self.out);
            } else {
                self.long.merge(symbols, &mut self.out);
            }
        }
        self.ids.clear();
        self.ranks.clear();
    }

    /// A character without a token: one token for each byte. Bytes without a token are dropped.
    fn bytes(&mut self, character: &[u8]) {
        // A space on its own is a character; inside a broken character it is the byte it was.
        let bytes = if character == b" " { SPACE_MARK_UTF8 } else { character };
        let ids = bytes.iter().map(|&byte| self.tokenizer.byte_tokens[usize::from(byte)]);
        self.out.extend(ids.filter(|&id| id != NONE));
    }
}
