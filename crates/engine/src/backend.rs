//! What the engine asks of a backend: a cache that can be set back, and steps that extend it.

use std::{future::Future, pin::Pin, rc::Rc};

use rullama_graph::Graph;

use crate::{Encoder, EngineError, Sampler, StepRows};

/// The result of work in progress. It is not `Send`, because a browser's promises are not.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, EngineError>> + 'a>>;

/// The progress of a step. On a CPU a step of a large model takes seconds, and users want to see it advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepProgress {
    /// Rows of the step.
    pub rows: usize,
    /// Operations that are done.
    pub done: usize,
    /// All operations of the step.
    pub all: usize,
}

/// Is called with the progress of steps.
pub type Watcher = Rc<dyn Fn(StepProgress)>;

/// The rows of a step whose logits the caller wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogitRows {
    /// No row: the step only extends the cache.
    None,
    /// The last row.
    Last,
    /// All rows.
    All,
}

/// Logits of some rows, one row after another.
#[derive(Debug, Clone, PartialEq)]
pub struct Logits {
    /// The values, row by row.
    pub values: Vec<f32>,
    /// The number of tokens in the vocabulary, and so of values in a row.
    pub vocabulary: usize,
}

impl Logits {
    /// The last row.
    pub fn last(&self) -> &[f32] {
        &self.values[self.values.len() - self.vocabulary..]
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.values.len() / self.vocabulary
    }
}

/// What a backend needs to choose the tokens of a reply by itself.
#[derive(Debug, Clone, Copy)]
pub struct Choosing<'a> {
    /// The last rows of the prompt, which the state reads first: at least one, at most one step.
    pub unread: StepRows<'a>,
    /// The whole prompt and the tokens generated after it, `unread` included. Penalties look back on them.
    pub tokens: &'a [u32],
    /// The sampler that would choose the tokens on the CPU. The backend starts with its random numbers.
    pub sampler: &'a Sampler,
    /// The most tokens that the engine will ask for.
    pub most: usize,
}

/// A loaded model that can run. It is immutable; its states hold what changes.
pub trait Backend {
    /// The state of a new conversation.
    fn state(&self) -> Result<Box<dyn State>, EngineError>;

    /// The most rows of a step that gives these logits. The engine cuts prompts into steps of this size.
    fn rows_at_once(&self, logits: LogitRows) -> usize;

    /// The most rows of a step that are read together because they see each other, such as those of an image. May be more than
    /// [`rows_at_once`](Self::rows_at_once).
    fn rows_together(&self, logits: LogitRows) -> usize {
        self.rows_at_once(logits)
    }

    /// A tower that runs beside the model. Its weights are read when it first runs.
    fn encoder(&self, _graph: Graph) -> Result<Box<dyn Encoder>, EngineError> {
        Err(EngineError::NoTowers)
    }
}

/// What became of a state whose device was lost.
pub enum Recovery {
    /// It cannot go on.
    None,
    /// It starts again with an empty cache, on a device that works.
    Again,
    /// This one takes its place.
    Elsewhere(Box<dyn State>),
}

/// The cache of one conversation.
pub trait State {
    /// The number of tokens in the cache.
    fn len(&self) -> usize;

    /// Whether the cache is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keeps the first `len` tokens. A cache that cannot be set back that far keeps fewer;
    /// [`len`](Self::len) tells how many.
    fn truncate(&mut self, len: usize);

    /// Calls `watcher` with the progress of each step, on backends whose steps take long.
    fn watch(&mut self, watcher: Watcher);

    /// Reads `rows`, at most [`rows_at_once`](Backend::rows_at_once) of them, and gives the logits asked for. If the
    /// step fails or is dropped, the state has read none of them.
    fn step<'a>(&'a mut self, rows: StepRows<'a>, logits: LogitRows) -> Pending<'a, Logits>;

    /// Reads the end of a prompt and starts to choose tokens, and gives `true`; or gives `false` and reads nothing, if
    /// this state cannot choose tokens by itself with these options.
    ///
    /// A state may read the tokens it chooses before [`next_token`](Self::next_token) gives them to the engine;
    /// [`truncate`](Self::truncate) sets it back to the tokens that the engine knows.
    fn begin<'a>(&'a mut self, _choosing: Choosing<'a>) -> Pending<'a, bool> {
        Box::pin(async { Ok(false) })
    }

    /// Ends a reply that was begun: no more tokens are asked for. What was read stays.
    fn end(&mut self) {}

    /// The next token, after [`begin`](Self::begin) gave `true`.
    fn next_token(&mut self) -> Pending<'_, u32> {
        unreachable!("only states that begin replies are asked for tokens")
    }

    /// Starts with an empty cache after [`EngineError::DeviceLost`], on a new device, or after [`EngineError::Evicted`]. Only
    /// some states can do that.
    fn recover(&mut self) -> Pending<'_, Recovery> {
        Box::pin(async { Ok(Recovery::None) })
    }
}
