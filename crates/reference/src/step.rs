//! What a step is given.

use std::ops::Range;

/// One row's input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Row<'a> {
    /// A token.
    Token(u32),
    /// A row made by a tower.
    Soft(&'a [f32]),
}

/// The rows of one step, which follow those in the caches.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Step<'a> {
    /// The rows.
    pub rows: Vec<Row<'a>>,
    /// Rows that belong together, such as those of one picture, as ranges of this step's rows.
    pub spans: Vec<Range<usize>>,
}

impl Step<'_> {
    /// A step of tokens.
    pub fn tokens(ids: &[u32]) -> Self {
        Self { rows: ids.iter().map(|&id| Row::Token(id)).collect(), spans: Vec::new() }
    }

    /// The end of the span that `row` belongs to, or the row after it.
    pub(crate) fn span_end(&self, row: usize) -> usize {
        self.spans.iter().find(|span| span.contains(&row)).map_or(row + 1, |span| span.end)
    }
}
