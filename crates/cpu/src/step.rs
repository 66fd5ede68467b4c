//! What a step is given, and which positions its rows see.

use std::ops::Range;

use rullama_graph::{Ahead, Mask};

/// One row's input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Row<'a> {
    /// A token.
    Token(u32),
    /// A row made by a tower.
    Soft(&'a [f32]),
}

/// What one step is given: rows that follow those in a conversation's caches, and the graph's inputs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Step<'a> {
    /// The rows.
    pub rows: Vec<Row<'a>>,
    /// Rows that belong together, such as those of one picture.
    pub spans: Vec<Range<usize>>,
    /// The graph's inputs, by name: rows of values, one after another.
    pub inputs: Vec<(&'a str, &'a [f32])>,
}

impl<'a> Step<'a> {
    /// A step of tokens.
    pub fn tokens(ids: &[u32]) -> Self {
        Self { rows: ids.iter().map(|&id| Row::Token(id)).collect(), ..Self::default() }
    }

    /// A step without tokens, of a graph that reads its inputs alone.
    pub fn inputs(inputs: &[(&'a str, &'a [f32])]) -> Self {
        Self { inputs: inputs.to_vec(), ..Self::default() }
    }

    /// The positions that row `row` of `rows` sees. `before` tokens come before these rows.
    pub(crate) fn seen(&self, mask: Mask, row: usize, before: usize, rows: usize) -> Range<usize> {
        let end = match mask.ahead {
            Ahead::Nothing => row + 1,
            Ahead::Span => {
                self.spans.iter().find(|span| span.contains(&row)).map_or(row + 1, |span| span.end)
            }
            Ahead::Step => rows,
        };
        mask.first(before + row)..before + end
    }
}
