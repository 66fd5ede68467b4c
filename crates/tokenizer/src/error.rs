//! Everything that can go wrong between a file's tokenizer keys and text.

/// Why a vocabulary could not be read, or ids could not be turned into text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// The file describes some other tokenizer.
    #[error(
        "this tokenizer is not supported: {found} (expected `gemma4`, or `llama` with merges for a gemma4 model)"
    )]
    Unsupported {
        /// The model name, and what else of the description decided against it.
        found: String,
    },

    /// A tokenizer key is missing or has the wrong type.
    #[error(transparent)]
    Metadata(#[from] rullama_gguf::MetadataError),

    /// The vocabulary holds no tokens.
    #[error("the vocabulary is empty")]
    EmptyVocabulary,

    /// The vocabulary or its merges exceed what the tables can address.
    #[error("the vocabulary has {found} {what} (expected at most {limit})")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there may be.
        limit: usize,
    },

    /// Entries that were chosen so that lookups in a hash table would take very long.
    #[error("the vocabulary is not a real one: its {what} are chosen to collide in a hash table")]
    Crowded {
        /// What collides.
        what: &'static str,
    },

    /// The list of token types does not match the list of tokens.
    #[error("the vocabulary has {found} token types for {expected} tokens")]
    TypeCount {
        /// Entries in the list of types.
        found: usize,
        /// Tokens in the vocabulary.
        expected: usize,
    },

    /// A token type outside the known range.
    #[error("token {id} has type {found} (expected 0 to 6)")]
    TokenType {
        /// The token with the odd type.
        id: u32,
        /// Its type as written in the file.
        found: i32,
    },

    /// A merge that is not two parts with a space between them.
    #[error("merge {index} is `{found}` (expected two parts separated by a space)")]
    MalformedMerge {
        /// Position in the list of merges.
        index: usize,
        /// The entry, with invalid UTF-8 replaced.
        found: String,
    },

    /// A merge of, or into, a text that is not in the vocabulary.
    #[error("merge {index} uses `{text}`, which is not in the vocabulary")]
    UnknownMergeToken {
        /// Position in the list of merges.
        index: usize,
        /// The text without a token, with invalid UTF-8 replaced.
        text: String,
    },

    /// A token every prompt needs is not in the vocabulary.
    #[error("the vocabulary has no token `{text}`")]
    MissingToken {
        /// The text of the missing token.
        text: &'static str,
    },

    /// The file gives a role to an id that no token has.
    #[error("`{key}` is {id}, but the vocabulary has {tokens} tokens")]
    RoleOutOfRange {
        /// The role, named as the metadata key without its prefix.
        key: &'static str,
        /// The id in the file.
        id: i64,
        /// Tokens in the vocabulary.
        tokens: usize,
    },

    /// An id to decode that no token has.
    #[error("token {id} does not exist (the vocabulary has {tokens} tokens)")]
    UnknownId {
        /// The id.
        id: u32,
        /// Tokens in the vocabulary.
        tokens: usize,
    },
}

impl TokenizerError {
    /// A name for the kind of failure that stays the same between releases.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unsupported { .. } => "tokenizer.unsupported",
            Self::Metadata(_) => "tokenizer.metadata",
            Self::EmptyVocabulary
            | Self::TooLarge { .. }
            | Self::Crowded { .. }
            | Self::TypeCount { .. }
            | Self::TokenType { .. }
            | Self::MissingToken { .. }
            | Self::RoleOutOfRange { .. } => "tokenizer.vocabulary",
            Self::MalformedMerge { .. } | Self::UnknownMergeToken { .. } => "tokenizer.merges",
            Self::UnknownId { .. } => "tokenizer.unknown_id",
        }
    }
}
