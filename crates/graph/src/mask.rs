//! Which cached rows a row attends to.

use std::fmt;

/// What a row sees of the rows that come after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ahead {
    /// Nothing: text is read in order.
    #[default]
    Nothing,
    /// The rest of the picture it belongs to.
    Span,
    /// All rows of its step, as on a canvas that is written everywhere at once.
    Step,
}

/// Which rows a row attends to. It always sees itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Mask {
    /// How many rows back, itself included; without it, all of them.
    pub window: Option<u32>,
    /// What it sees of later rows.
    pub ahead: Ahead,
}

impl Mask {
    /// Everything before.
    pub const GLOBAL: Self = Self { window: None, ahead: Ahead::Nothing };

    /// Everything, before and after.
    pub const ALL: Self = Self { window: None, ahead: Ahead::Step };

    /// The last `window` rows.
    pub fn sliding(window: u32) -> Self {
        Self { window: Some(window), ahead: Ahead::Nothing }
    }

    /// The first position a row at `position` sees.
    pub fn first(&self, position: usize) -> usize {
        self.window.map_or(0, |window| (position + 1).saturating_sub(window as usize))
    }
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.window {
            Some(window) => write!(f, "sliding {window}")?,
            None => f.write_str("global")?,
        }
        match self.ahead {
            Ahead::Nothing => Ok(()),
            Ahead::Span => f.write_str(" within spans"),
            Ahead::Step => f.write_str(" within step"),
        }
    }
}

/// The shape of attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttendShape {
    /// Heads that ask.
    pub heads: u32,
    /// Heads that answer; each serves `heads / kv_heads` neighbouring heads.
    pub kv_heads: u32,
    /// Columns of a head.
    pub head_width: u32,
    /// Which rows are seen.
    pub mask: Mask,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_counts_the_row_itself() {
        let mask = Mask::sliding(4);
        assert_eq!([0, 3, 4, 10].map(|position| mask.first(position)), [0, 0, 1, 7]);
        assert_eq!(Mask::GLOBAL.first(1000), 0);
    }
}
