//! What can be wrong with logits.

/// Why no token could be chosen.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// There are no logits.
    #[error("logits: found none; expected one for each token")]
    Empty,

    /// A logit is not a number, or every logit is −∞: the step that made them went wrong.
    #[error("logit of token {id}: found {found}; expected a finite number")]
    NotFinite {
        /// The first such token.
        id: u32,
        /// Its logit.
        found: f32,
    },

    /// The tokens that the model left possible are all suppressed, or ruled out by their bias.
    #[error("tokens: found all of {tokens} ruled out; expected at least one that is not")]
    AllSuppressed {
        /// Tokens in the vocabulary.
        tokens: usize,
    },
}

impl SampleError {
    /// A stable name for the kind of error: the contract for JavaScript and HTTP.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "sample.empty",
            Self::NotFinite { .. } => "sample.not_finite",
            Self::AllSuppressed { .. } => "sample.all_suppressed",
        }
    }
}
