//! What a step is given, and the row table that follows from it.

use std::ops::Range;

use rullama_graph::{Ahead, Mask, Rows};

use crate::Matrix;

/// One row's input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Row<'a> {
    /// A token.
    Token(u32),
    /// A row made by a tower.
    Soft(&'a [f32]),
}

/// The rows that a step adds to one conversation. They follow those in its caches.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sequence<'a> {
    /// The rows.
    pub rows: Vec<Row<'a>>,
    /// Rows that belong together, such as those of one picture, as ranges of this sequence's rows.
    pub spans: Vec<Range<usize>>,
}

impl Sequence<'_> {
    /// Rows of tokens.
    pub fn tokens(ids: &[u32]) -> Self {
        Self { rows: ids.iter().map(|&id| Row::Token(id)).collect(), spans: Vec::new() }
    }

    /// The end of the span that `row` belongs to, or the row after it.
    fn span_end(&self, row: usize) -> usize {
        self.spans.iter().find(|span| span.contains(&row)).map_or(row + 1, |span| span.end)
    }
}

/// What one step is given: rows for any number of conversations, and the graph's inputs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Step<'a> {
    /// The rows of each conversation.
    pub sequences: Vec<Sequence<'a>>,
    /// The graph's inputs, by name.
    pub inputs: Vec<(&'a str, &'a Matrix)>,
}

impl<'a> Step<'a> {
    /// A step of tokens of one conversation.
    pub fn tokens(ids: &[u32]) -> Self {
        Self::sequence(Sequence::tokens(ids))
    }

    /// A step of one conversation.
    pub fn sequence(sequence: Sequence<'a>) -> Self {
        Self { sequences: vec![sequence], inputs: Vec::new() }
    }

    /// A step without tokens, of a graph that reads its inputs alone.
    pub fn inputs(inputs: &[(&'a str, &'a Matrix)]) -> Self {
        Self { sequences: Vec::new(), inputs: inputs.to_vec() }
    }

    /// Tokens and soft rows of all conversations.
    pub(crate) fn len(&self) -> usize {
        self.sequences.iter().map(|sequence| sequence.rows.len()).sum()
    }
}

/// Where one row of a value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The conversation it belongs to.
    pub(crate) sequence: usize,
    /// Its number among the conversation's rows of this step.
    pub(crate) row: usize,
    /// Its position in the conversation.
    pub(crate) position: usize,
}

/// For each row of a step: whose it is, and where it stands.
#[derive(Debug, Default)]
pub(crate) struct RowTable {
    rows: Vec<Entry>,
    last: Vec<Entry>,
}

impl RowTable {
    /// `cached` says how many tokens each conversation has already.
    pub(crate) fn new(step: &Step<'_>, cached: &[usize]) -> Self {
        let mut table = Self::default();
        for (sequence, (rows, &cached)) in step.sequences.iter().zip(cached).enumerate() {
            let entry = |row| Entry { sequence, row, position: cached + row };
            table.rows.extend((0..rows.rows.len()).map(entry));
            table.last.extend(rows.rows.len().checked_sub(1).map(entry));
        }
        table
    }

    /// The entries of a value's rows. Rows of a domain are one sequence of their own.
    pub(crate) fn entries(&self, rows: Rows, count: usize) -> Vec<Entry> {
        match rows {
            Rows::Step => self.rows.clone(),
            Rows::Last => self.last.clone(),
            Rows::Of(_) => (0..count).map(|row| Entry { sequence: 0, row, position: row }).collect(),
        }
    }

    /// For each conversation, the number of its last row among those of the step.
    pub(crate) fn last_rows(&self) -> Vec<usize> {
        self.last
            .iter()
            .map(|last| self.rows.iter().position(|row| row == last).expect("it is one of them"))
            .collect()
    }

    /// The number of the first row of a conversation among those of the step.
    pub(crate) fn first_row(&self, sequence: usize) -> usize {
        self.rows.iter().position(|row| row.sequence == sequence).unwrap_or(0)
    }
}

/// The positions that a row sees. `before` tokens of its conversation come before the step.
pub(crate) fn seen(
    mask: Mask,
    entry: Entry,
    before: usize,
    sequence: Option<&Sequence<'_>>,
    rows: usize,
) -> Range<usize> {
    let end = match (mask.ahead, sequence) {
        (Ahead::Nothing, _) | (Ahead::Span, None) => entry.row + 1,
        (Ahead::Span, Some(sequence)) => sequence.span_end(entry.row),
        (Ahead::Step, _) => rows,
    };
    mask.first(before + entry.row)..before + end
}
