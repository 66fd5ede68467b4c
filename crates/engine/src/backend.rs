//! What the engine asks of whatever computes: a cache that can be set back, and steps.

use std::{future::Future, pin::Pin, rc::Rc};

use crate::{EngineError, SamplingOptions};

/// Work under way. Not `Send`: a browser's promises are not either.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, EngineError>> + 'a>>;

/// How far a step has got. On a CPU a step of a large model takes seconds, and people want to see that it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepProgress {
    /// Rows of the step.
    pub rows: usize,
    /// Operations done.
    pub done: usize,
    /// All operations.
    pub all: usize,
}

/// Someone who is told how far steps have got.
pub type Watcher = Rc<dyn Fn(StepProgress)>;

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

/// How the tokens of a reply are chosen by whoever computes their logits.
#[derive(Debug, Clone, Copy)]
pub struct Choosing<'a> {
    /// What is still to be read.
    pub rest: &'a [u32],
    /// The whole prompt, with what was generated after it, if anything was: penalties look back on it.
    pub tokens: &'a [u32],
    /// How tokens are chosen.
    pub options: &'a SamplingOptions,
    /// Tokens that are never chosen.
    pub suppressed: &'a [u32],
    /// Where random numbers start if the options leave that open.
    pub seed: u64,
    /// Tokens of the reply that were chosen before: the random numbers for them are used up.
    pub drawn: usize,
    /// The most tokens that will be asked for.
    pub most: usize,
}

/// Runs a model. Immutable: what changes is in the states it makes.
pub trait Backend {
    /// The state of a new conversation.
    fn state(&self) -> Result<Box<dyn State>, EngineError>;

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

    /// Tells `watcher` how far steps have got, where steps take long enough for that to matter.
    fn watch(&mut self, watcher: Watcher);

    /// Reads `ids` and gives the logits of the last of them, or of all. If it fails or is dropped halfway,
    /// nothing was read.
    fn step<'a>(&'a mut self, ids: &'a [u32], all: bool) -> Pending<'a, Logits>;

    /// Reads the rest of a prompt and begins to choose tokens, if this state can do so by itself, with these options.
    ///
    /// States that can may read tokens before anybody has seen them; [`truncate`](Self::truncate) sets them back to what
    /// was seen.
    fn begin<'a>(&'a mut self, _choosing: Choosing<'a>) -> Pending<'a, bool> {
        Box::pin(async { Ok(false) })
    }

    /// The next token of a reply that was begun.
    fn next_token(&mut self) -> Pending<'_, u32> {
        unreachable!("only states that begin replies are asked for tokens")
    }

    /// Begins anew with an empty memory after something failed with the code `device.lost`; or says that it cannot.
    fn recover(&mut self) -> Pending<'_, bool> {
        Box::pin(async { Ok(false) })
    }
}
