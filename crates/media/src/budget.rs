//! How many soft tokens an image may become, and the size that it is given for that.

use std::fmt;

use crate::{MediaError, pixels::check_size};

/// Pixels along a side of the square that becomes one soft token: three patches of sixteen.
pub const TOKEN_SIDE: u32 = 48;

/// The most soft tokens that an image becomes: more show more detail, and take more time and more of the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Budget(u32);

impl Budget {
    /// Every budget that the models were trained with.
    pub const ALL: [Self; 5] = [Self(70), Self(140), Self(280), Self(560), Self(1120)];

    /// The budget with this many soft tokens.
    pub fn new(soft_tokens: u32) -> Result<Self, MediaError> {
        let budget = Self(soft_tokens);
        if Self::ALL.contains(&budget) { Ok(budget) } else { Err(MediaError::Budget { found: soft_tokens }) }
    }

    /// The most soft tokens that an image becomes.
    pub fn soft_tokens(self) -> u32 {
        self.0
    }

    /// The width and height that an image gets: as large as the budget allows, at nearly the same aspect ratio, with sides
    /// that are multiples of [`TOKEN_SIDE`]. This is Hugging Face's rule, digit for digit.
    pub fn fit(self, width: u32, height: u32) -> Result<[u32; 2], MediaError> {
        check_size(width, height)?;
        let [across, down] = [f64::from(width), f64::from(height)];
        let side = f64::from(TOKEN_SIDE);
        let factor = (f64::from(self.0) * side * side / (across * down)).sqrt();
        let tokens = |length: f64| (factor * length / side).floor();
        // A thin image is one token wide, and as long as the budget allows.
        let tokens = match [tokens(across), tokens(down)] {
            [_, 0.0] => [(across / down).floor().min(self.0.into()), 1.0],
            [0.0, _] => [1.0, (down / across).floor().min(self.0.into())],
            both => both,
        };
        // At most 1120 tokens of 48 pixels.
        Ok(tokens.map(|tokens| tokens as u32 * TOKEN_SIDE))
    }

    /// All budgets, for a message.
    pub(crate) fn list() -> String {
        Self::ALL.map(|budget| budget.to_string()).join(", ")
    }
}

/// What the models use unless told otherwise.
impl Default for Budget {
    fn default() -> Self {
        Self(280)
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
