//! The tokenizer itself: built once from a file's keys, then only read.

use std::fmt;

use crate::{
    TokenKind, TokenizerError, boundary::Boundaries, character::CharacterTable, merges::Merges,
    special::SpecialTokens, vocabulary::Vocabulary,
};

/// Special tokens that end generation, by text.
const END_TEXTS: [&str; 3] = ["<eos>", "<turn|>", "<|tool_response>"];

/// Special tokens that reply parsing has to see, by text.
const PARSER_TEXTS: [&str; 6] =
    ["<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<|\"|>"];

/// The Gemma 4 tokenizer: text to token ids and back.
///
/// It owns everything it needs, never changes after it is built, and can be shared between threads.
pub struct Tokenizer {
    pub(crate) vocabulary: Vocabulary,
    pub(crate) merges: Merges,
    pub(crate) boundaries: Boundaries,
    pub(crate) characters: CharacterTable,
    pub(crate) byte_tokens: [u32; 256],
    /// Everything cut out of text where special tokens are parsed.
    pub(crate) special: SpecialTokens,
    /// The part of it that is cut out even where special tokens are text.
    pub(crate) user_defined: SpecialTokens,
    /// Special tokens that reply parsing sees.
    pub(crate) for_parser: Vec<u32>,
    bos: u32,
    eos: Option<u32>,
    unknown: Option<u32>,
    padding: Option<u32>,
    mask: Option<u32>,
    ends: Vec<u32>,
    suppressed: Vec<u32>,
}

/// What a tokenizer is made of, apart from any file.
///
/// Texts are as in GGUF files: spaces written as U+2581, bytes as `<0xHH>`, merges as `left right`.
#[derive(Debug, Clone)]
pub struct Parts<'p, Tokens, Merges> {
    /// The text of each token, in order of id.
    pub tokens: Tokens,
    /// The type number of each token, or nothing if all are normal.
    pub types: &'p [i32],
    /// The merges, the one to apply first coming first.
    pub merges: Merges,
    /// Which ids have which role.
    pub roles: Roles,
}

/// Ids that a file gives a role. Roles left out are looked up by text where the text is known.
#[derive(Debug, Clone, Default)]
pub struct Roles {
    /// Begins every prompt. Else `<bos>`.
    pub bos: Option<u32>,
    /// Ends a text. Else `<eos>`.
    pub eos: Option<u32>,
    /// Stands for what cannot be expressed. Else `<unk>`.
    pub unknown: Option<u32>,
    /// Fills unused positions. Else `<pad>`.
    pub padding: Option<u32>,
    /// Hides a position. Else `<mask>`.
    pub mask: Option<u32>,
    /// Tokens that end generation, besides `eos`, `<eos>`, `<turn|>` and `<|tool_response>`.
    pub ends: Vec<u32>,
    /// Tokens that must not be generated. Ids that no token has are passed over.
    pub suppressed: Vec<u32>,
}

impl Tokenizer {
    /// Builds a tokenizer from its parts, which are copied.
    ///
    /// # Errors
    ///
    /// If the vocabulary is empty or too large, a list has the wrong length, a merge does not name tokens of
    /// the vocabulary, a role goes to an id that does not exist, or there is no token to begin a prompt.
    pub fn from_parts<'a, T, M>(parts: Parts<'_, T, M>) -> Result<Self, TokenizerError>
    where
        T: IntoIterator<Item = &'a [u8]>,
        M: IntoIterator<Item = &'a [u8]>,
    {
        let Parts { tokens, types, merges, roles } = parts;
        let vocabulary = Vocabulary::new(tokens.into_iter(), types)?;
        let mut boundaries = Boundaries::new();
        let mut merges = Merges::new(merges.into_iter(), &vocabulary, &mut boundaries)?;
        let mut characters = CharacterTable::new();
        for id in 0..vocabulary.len() as u32 {
            characters.add(vocabulary.text(id), id);
        }
        merges.tabulate_ascii(&characters);

        let tokens_of = |wanted: fn(TokenKind) -> bool| {
            let kinds = vocabulary.kinds().iter().zip(0..);
            let ids = kinds.filter(move |&(&kind, _)| wanted(kind)).map(|(_, id)| id);
            SpecialTokens::new(ids.map(|id: u32| (vocabulary.text(id), id)))
        };
        let special = tokens_of(TokenKind::is_special);
        let user_defined = tokens_of(|kind| kind == TokenKind::UserDefined);

        let role = |key, given: Option<u32>, text: &str| match given {
            Some(id) => in_range(key, id, &vocabulary).map(Some),
            None => Ok(vocabulary.id(text.as_bytes())),
        };
        let bos = role("bos_token_id", roles.bos, "<bos>")?;
        let eos = role("eos_token_id", roles.eos, "<eos>")?;
        let mut ends: Vec<u32> =
            END_TEXTS.iter().filter_map(|text| vocabulary.id(text.as_bytes())).chain(eos).collect();
        for id in roles.ends {
            ends.push(in_range("eos_token_ids", id, &vocabulary)?);
        }
        ends.sort_unstable();
        ends.dedup();

        let count = vocabulary.len();
        Ok(Self {
            byte_tokens: vocabulary.byte_tokens(),
            for_parser: PARSER_TEXTS.iter().filter_map(|text| vocabulary.id(text.as_bytes())).collect(),
            bos: bos.ok_or(TokenizerError::MissingToken { text: "<bos>" })?,
            eos,
            unknown: role("unknown_token_id", roles.unknown, "<unk>")?,
            padding: role("padding_token_id", roles.padding, "<pad>")?,
            mask: role("mask_token_id", roles.mask, "<mask>")?,
            ends,
            // A list made for a larger vocabulary suppresses what there is of it here.
            suppressed: roles.suppressed.into_iter().filter(|&id| (id as usize) < count).collect(),
            special,
            user_defined,
            characters,
            boundaries,
            merges,
            vocabulary,
        })
    }

    /// How many tokens there are; ids are below this.
    #[expect(clippy::len_without_is_empty, reason = "a vocabulary without tokens is refused")]
    pub fn len(&self) -> usize {
        self.vocabulary.len()
    }

    /// The token that begins every prompt.
    pub fn bos(&self) -> u32 {
        self.bos
    }

    /// The token the file names as the end of a text. See [`Tokenizer::is_end`] for when to stop.
    pub fn eos(&self) -> Option<u32> {
        self.eos
    }

    /// The token for what cannot be expressed. Encoding never makes it: it falls back to bytes.
    pub fn unknown(&self) -> Option<u32> {
        self.unknown
    }

    /// The token that fills unused positions.
    pub fn padding(&self) -> Option<u32> {
        self.padding
    }

    /// The token that hides a position.
    pub fn mask(&self) -> Option<u32> {
        self.mask
    }

    /// The tokens that end generation, in order of id.
    pub fn end_tokens(&self) -> &[u32] {
        &self.ends
    }

    /// Whether generation ends when this token is generated.
    pub fn is_end(&self, id: u32) -> bool {
        self.ends.binary_search(&id).is_ok()
    }

    /// Tokens that must not be generated, as listed in the file.
    pub fn suppressed_tokens(&self) -> &[u32] {
        &self.suppressed
    }

    /// The token with exactly this text, as the file writes it: `▁the`, `<|turn>`, `<0x0A>`.
    pub fn token_id(&self, text: &str) -> Option<u32> {
        self.vocabulary.id(text.as_bytes())
    }

    /// The text of a token as the file writes it. For what it contributes to output, see
    /// [`Tokenizer::piece`].
    pub fn token_text(&self, id: u32) -> Option<&[u8]> {
        self.has(id).then(|| self.vocabulary.text(id))
    }

    /// The kind of a token.
    pub fn token_kind(&self, id: u32) -> Option<TokenKind> {
        self.has(id).then(|| self.vocabulary.kind(id))
    }

    /// Bytes of memory the tokenizer holds.
    pub fn memory(&self) -> usize {
        size_of::<Self>()
            + self.vocabulary.memory()
            + self.merges.memory()
            + self.boundaries.memory()
            + self.characters.memory()
            + self.special.memory()
            + self.user_defined.memory()
    }

    pub(crate) fn has(&self, id: u32) -> bool {
        (id as usize) < self.len()
    }
}

/// The vocabulary itself would fill a screen many times over.
impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer")
            .field("tokens", &self.len())
            .field("bos", &self.bos)
            .field("ends", &self.ends)
            .finish_non_exhaustive()
    }
}

fn in_range(key: &'static str, id: u32, vocabulary: &Vocabulary) -> Result<u32, TokenizerError> {
    let tokens = vocabulary.len();
    if (id as usize) < tokens {
        Ok(id)
    } else {
        Err(TokenizerError::RoleOutOfRange { key, id: id.into(), tokens })
    }
}
