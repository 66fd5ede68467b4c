//! Shapes of values.

use std::fmt;

/// How many rows a value has, in terms of the step that computes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rows {
    /// One for each token of the step.
    Step,
    /// One, for the step's last token.
    Last,
}

impl Rows {
    /// The number of rows in a step of `rows` tokens.
    pub fn count(self, rows: usize) -> usize {
        match self {
            Self::Step => rows,
            Self::Last => rows.min(1),
        }
    }
}

/// The shape of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Its rows.
    pub rows: Rows,
    /// Its columns.
    pub width: u32,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = match self.rows {
            Rows::Step => "step",
            Rows::Last => "last",
        };
        write!(f, "{rows}×{}", self.width)
    }
}
