//! What a step reads: tokens, and rows that towers made.

use std::ops::Range;

use crate::GpuError;

/// One row of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RowInput<'a> {
    /// A token.
    Token(u32),
    /// A row made by a tower.
    Soft(&'a [f32]),
}

/// The rows that a step adds to a conversation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepInput<'a> {
    /// The rows.
    pub rows: Vec<RowInput<'a>>,
    /// Rows that belong together, such as those of one picture: they see each other in layers whose mask says so. Spans are
    /// in order and do not overlap.
    pub spans: Vec<Range<usize>>,
}

impl StepInput<'_> {
    /// Refuses spans that are empty, overlap, or end after the last row.
    pub(crate) fn check_spans(&self) -> Result<(), GpuError> {
        let mut at = 0;
        for span in &self.spans {
            if span.is_empty() || span.start < at || span.end > self.rows.len() {
                return Err(GpuError::WrongSpan { start: span.start, end: span.end, rows: self.rows.len() });
            }
            at = span.end;
        }
        Ok(())
    }
}

impl From<&[u32]> for StepInput<'_> {
    fn from(ids: &[u32]) -> Self {
        Self { rows: ids.iter().map(|&id| RowInput::Token(id)).collect(), spans: Vec::new() }
    }
}

impl<const N: usize> From<&[u32; N]> for StepInput<'_> {
    fn from(ids: &[u32; N]) -> Self {
        Self::from(ids.as_slice())
    }
}

impl From<&Vec<u32>> for StepInput<'_> {
    fn from(ids: &Vec<u32>) -> Self {
        Self::from(ids.as_slice())
    }
}
