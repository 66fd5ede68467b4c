//! Shapes of values: which rows they have, and how many columns.

use std::fmt;

/// A set of rows that a graph declares, such as the patches of a picture, or what they are pooled to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Domain(pub(crate) u32);

impl Domain {
    /// Its number.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a graph knows of a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainInfo {
    /// What its rows are, for messages and printed graphs.
    pub name: String,
    /// How many there are.
    pub rows: DomainRows,
}

/// How many rows a domain has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DomainRows {
    /// As many as the inputs of this domain are given.
    Given,
    /// One for each `group` neighbouring rows of another domain.
    Grouped {
        /// The other domain.
        of: Domain,
        /// Rows of it that become one.
        group: u32,
    },
}

/// Which rows a value has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rows {
    /// One for each token of the step.
    Step,
    /// One for each conversation of the step: its last token.
    Last,
    /// Those of a domain that the graph declares.
    Of(Domain),
}

impl Rows {
    /// The number of rows in a step of `rows` tokens of one conversation.
    ///
    /// # Panics
    ///
    /// For rows of a domain, whose number is not that of tokens.
    pub fn count(self, rows: usize) -> usize {
        match self {
            Self::Step => rows,
            Self::Last => rows.min(1),
            Self::Of(_) => panic!("the rows of a domain do not follow from a step's tokens"),
        }
    }
}

/// How many rows of each kind a step has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowCounts {
    /// Tokens.
    pub step: usize,
    /// Conversations.
    pub last: usize,
    /// Rows of each domain, by number.
    pub domains: Vec<usize>,
}

impl RowCounts {
    /// A step of `rows` tokens of one conversation, without any domain.
    pub fn tokens(rows: usize) -> Self {
        Self { step: rows, last: rows.min(1), domains: Vec::new() }
    }

    /// The number of rows of one kind.
    ///
    /// # Panics
    ///
    /// For a domain whose rows were not counted.
    pub fn of(&self, rows: Rows) -> usize {
        match rows {
            Rows::Step => self.step,
            Rows::Last => self.last,
            Rows::Of(domain) => self.domains[domain.index()],
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
        match self.rows {
            Rows::Step => f.write_str("step")?,
            Rows::Last => f.write_str("last")?,
            Rows::Of(domain) => write!(f, "domain{}", domain.0)?,
        }
        write!(f, "×{}", self.width)
    }
}
