//! What can be wrong with logits.

/// Why no token could be chosen.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// There are no logits.
    #[error("there are no logits to sample from")]
    Empty,

    /// A logit is not a number, or every logit is −∞: the step that made them went wrong.
    #[error("the logit of token {id} is {found}, which is not finite")]
    NotFinite {
        /// The first such token.
        id: u32,
        /// Its logit.
        found: f32,
    },

    /// The tokens that the model left possible are all suppressed, or ruled out by their bias.
    #[error("all {tokens} tokens are ruled out, so none can be chosen")]
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
