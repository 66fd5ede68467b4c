//! How a model is loaded onto a GPU, and the sizes that follow from it.

use rullama_graph::Graph;

use crate::{
    CacheFormat, Residency,
    lower::StepShape,
    rows::{MOST_SLOTS, MOST_STEP_ROWS},
    tuning::{FEW_ROWS, MOST_ROWS, SMALL_CHUNK},
};

/// Conversations that are kept on the GPU where nothing else is asked for.
const CONVERSATIONS: u32 = 4;

/// How a model is loaded onto a GPU.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelOptions {
    /// Tokens that a conversation may have.
    pub context: u32,
    /// How keys and values are kept.
    pub cache: CacheFormat,
    /// Whether operations are fused. Without, each is a dispatch of its own: slow, and the proof of the other way.
    pub fused: bool,
    /// Bytes of GPU memory that the model and one conversation may take; without it, as many as there are.
    pub memory: Option<u64>,
    /// Where weights live; without it, the fastest way that fits.
    pub residency: Option<Residency>,
    /// Conversations that are kept on the GPU at once, at most; where there is memory for no more, fewer. Those beyond are
    /// read again when they go on.
    pub conversations: u32,
    /// The most tokens of a step. Fewer keep a slow GPU busy for less time at once, and take less memory.
    pub rows: u32,
}

impl Default for ModelOptions {
    fn default() -> Self {
        Self {
            context: 4096,
            cache: CacheFormat::F16,
            fused: true,
            memory: None,
            residency: None,
            conversations: CONVERSATIONS,
            rows: MOST_ROWS,
        }
    }
}

impl ModelOptions {
    /// Sets the size of conversations.
    #[must_use]
    pub fn context(mut self, tokens: u32) -> Self {
        self.context = tokens;
        self
    }

    /// Sets how keys and values are kept.
    #[must_use]
    pub fn cache(mut self, format: CacheFormat) -> Self {
        self.cache = format;
        self
    }

    /// Sets how much memory may be taken.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Sets where weights live.
    #[must_use]
    pub fn residency(mut self, residency: Residency) -> Self {
        self.residency = Some(residency);
        self
    }

    /// Sets how many conversations are kept on the GPU at once, at most: from one to 64.
    #[must_use]
    pub fn conversations(mut self, most: u32) -> Self {
        self.conversations = most.clamp(1, MOST_SLOTS);
        self
    }

    /// Sets the most tokens of a step: at least one, and no more than 1152. More than 512 are no faster.
    #[must_use]
    pub fn rows(mut self, rows: u32) -> Self {
        self.rows = rows.clamp(1, MOST_STEP_ROWS);
        self
    }

    /// The most tokens of a step.
    pub(crate) fn most_rows(&self) -> u32 {
        self.rows.clamp(1, MOST_STEP_ROWS)
    }

    /// Makes every operation a dispatch of its own.
    #[must_use]
    pub fn unfused(mut self) -> Self {
        self.fused = false;
        self
    }
}

/// Rows of each cache: the whole context, or for layers that slide, what they see and the step that is being written.
pub(crate) fn capacities(graph: &Graph, context: u32, most_rows: u32) -> Vec<u32> {
    let ring = |window: u32| (window + most_rows).min(context);
    graph.caches().iter().map(|cache| cache.window.map_or(context, ring)).collect()
}

/// Which plan a step of so many rows takes, by the most rows it is made for.
fn plan_rows(rows: u32, most_rows: u32) -> u32 {
    match rows {
        1..=FEW_ROWS => rows,
        _ if rows <= SMALL_CHUNK => SMALL_CHUNK.min(most_rows),
        _ => most_rows,
    }
}

/// The steps of one program, for a prompt's step of so many rows.
pub(crate) fn prompt_shape(rows: u32, most_rows: u32) -> StepShape {
    StepShape::prompt(plan_rows(rows, most_rows))
}

/// The same for a step that decodes so many conversations together.
pub(crate) fn decode_shape(conversations: u32) -> StepShape {
    match conversations {
        1..=FEW_ROWS => StepShape::decode(conversations),
        _ => StepShape::decode(conversations.next_power_of_two()),
    }
}
