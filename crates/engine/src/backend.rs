//! What the engine asks of whatever computes: a cache that can be set back, and steps.

use std::{future::Future, pin::Pin};

use crate::EngineError;

/// Work under way. Not `Send`: a browser's promises are not either.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, EngineError>> + 'a>>;

/// Logits of some rows, one after another.
#[derive(Debug, Clone, PartialEq)]
pub struct Logits {
    /// The values, row by row.
    pub values: Vec<f32>,
    /// Tokens in the vocabulary: the values of one row.
    pub vocabulary: usize,
}

impl Logits {
    /// The last row.
    pub fn last(&self) -> &[f32] {
        &self.values[self.values.len() - self.vocabulary..]
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.values.len() / self.vocabulary
    }
}

/// Runs a model. Immutable: what changes is in the states it makes.
pub trait Backend {
    /// The state of a new conversation.
    fn state(&self) -> Box<dyn State>;

    /// How many rows a step should have at most while a prompt is read.
    fn rows_at_once(&self) -> usize;
}

/// What a model remembers of one conversation.
pub trait State {
    /// Tokens remembered.
    fn len(&self) -> usize;

    /// Whether nothing is remembered.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets what follows the first `len` tokens. Some memories cannot be set back that far and forget more;
    /// [`len`](Self::len) tells.
    fn truncate(&mut self, len: usize);

    /// Reads `ids` and gives the logits of the last of them, or of all. If it fails or is dropped halfway,
    /// nothing was read.
    fn step<'a>(&'a mut self, ids: &'a [u32], all: bool) -> Pending<'a, Logits>;
}
