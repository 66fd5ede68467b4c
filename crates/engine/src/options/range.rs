//! The values that options may have: the one table that every face checks against.
//!
//! The command line makes its parsers from these ranges, requests in JSON are checked by them, and
//! `packages/npm/src/ranges.ts` holds the same table for JavaScript (a test compares the two). The ranges refuse
//! nothing that has a meaning in Ollama: `num_predict` −1 (no limit) and −2 (until the context is full), `top_k` −1
//! (off), `repeat_last_n` −1 (the whole context), and every 64-bit integer as a seed.

use std::fmt;

use super::OptionError;

/// The most alternatives that [`SamplingOptions::top_logprobs`](super::SamplingOptions::top_logprobs) may ask for.
const MAX_TOP_LOGPROBS: u32 = 20;

/// The values that an option may have.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum OptionRange {
    /// Whole numbers, both ends included.
    Whole {
        /// The smallest.
        least: i128,
        /// The largest.
        most: i128,
    },
    /// Finite numbers, both ends included.
    Number {
        /// The smallest.
        least: f32,
        /// The largest.
        most: f32,
    },
    /// Finite numbers above zero.
    AboveZero,
}

impl OptionRange {
    /// `temperature`. 0 takes the most probable token.
    pub const TEMPERATURE: Self = Self::Number { least: 0.0, most: f32::MAX };
    /// `top_p`, `min_p` and `typical_p`.
    pub const PROBABILITY: Self = Self::Number { least: 0.0, most: 1.0 };
    /// `repeat_penalty`. It divides, so it cannot be zero.
    pub const REPEAT_PENALTY: Self = Self::AboveZero;
    /// `frequency_penalty`, `presence_penalty` and the numbers of `logit_bias`: added to logits.
    pub const FINITE: Self = Self::Number { least: f32::MIN, most: f32::MAX };
    /// `repeat_last_n`. −1 is the whole context.
    pub const REPEAT_LAST_N: Self = Self::Whole { least: -1, most: i32::MAX as i128 };
    /// `top_k`. 0 and −1 are off.
    pub const TOP_K: Self = Self::Whole { least: -1, most: u32::MAX as i128 };
    /// `seed`. −1 leaves the choice to the engine; every other value gives the same tokens each time.
    pub const SEED: Self = Self::Whole { least: i64::MIN as i128, most: u64::MAX as i128 };
    /// `top_logprobs`.
    pub const TOP_LOGPROBS: Self = Self::Whole { least: 0, most: MAX_TOP_LOGPROBS as i128 };
    /// `num_predict` and `max_tokens`. −1 and −2 are no limit but the context.
    pub const MAX_TOKENS: Self = Self::Whole { least: -2, most: u32::MAX as i128 };
    /// `num_ctx` and `context`, in tokens. The model has an upper bound of its own.
    pub const CONTEXT: Self = Self::Whole { least: 1, most: u32::MAX as i128 };
    /// `memory`, in bytes of the GPU's memory.
    pub const MEMORY: Self = Self::Whole { least: 1, most: u64::MAX as i128 };
    /// `rows`: the most tokens of a prompt that a GPU reads in one step.
    pub const ROWS: Self = Self::Whole { least: 1, most: u32::MAX as i128 };

    /// Every option with a range, by its name in JSON.
    pub const ALL: [(&'static str, Self); 18] = [
        ("temperature", Self::TEMPERATURE),
        ("top_p", Self::PROBABILITY),
        ("min_p", Self::PROBABILITY),
        ("typical_p", Self::PROBABILITY),
        ("repeat_penalty", Self::REPEAT_PENALTY),
        ("frequency_penalty", Self::FINITE),
        ("presence_penalty", Self::FINITE),
        ("logit_bias", Self::FINITE),
        ("repeat_last_n", Self::REPEAT_LAST_N),
        ("top_k", Self::TOP_K),
        ("seed", Self::SEED),
        ("top_logprobs", Self::TOP_LOGPROBS),
        ("num_predict", Self::MAX_TOKENS),
        ("max_tokens", Self::MAX_TOKENS),
        ("num_ctx", Self::CONTEXT),
        ("context", Self::CONTEXT),
        ("memory", Self::MEMORY),
        ("rows", Self::ROWS),
    ];

    /// Whether a number is in the range. Numbers with a fraction are in no range of whole numbers.
    #[must_use]
    pub fn holds(self, value: f32) -> bool {
        match self {
            Self::Number { least, most } => (least..=most).contains(&value),
            Self::AboveZero => value.is_finite() && value > 0.0,
            Self::Whole { .. } => value.fract() == 0.0 && self.holds_whole(value as i128),
        }
    }

    /// Whether a whole number is in the range.
    #[must_use]
    pub fn holds_whole(self, value: i128) -> bool {
        match self {
            Self::Whole { least, most } => (least..=most).contains(&value),
            Self::Number { .. } | Self::AboveZero => self.holds(value as f32),
        }
    }

    /// What is wrong with a value outside of the range.
    pub(super) fn error(self, option: &str, found: impl ToString) -> OptionError {
        OptionError::OutOfRange {
            option: option.to_owned(),
            found: found.to_string(),
            expected: self.to_string(),
        }
    }

    /// Refuses a value outside of the range, by the option's name.
    pub(crate) fn check(self, option: &str, found: f32) -> Result<(), OptionError> {
        if self.holds(found) { Ok(()) } else { Err(self.error(option, found)) }
    }

    /// The same for whole numbers.
    pub(crate) fn check_whole(self, option: &str, found: impl Into<i128>) -> Result<(), OptionError> {
        let found = found.into();
        if self.holds_whole(found) { Ok(()) } else { Err(self.error(option, found)) }
    }
}

impl fmt::Display for OptionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Whole { least, most } => write!(f, "a whole number from {least} to {most}"),
            Self::AboveZero => write!(f, "a finite number above 0"),
            Self::Number { least: f32::MIN, most: f32::MAX } => write!(f, "a finite number"),
            Self::Number { least, most: f32::MAX } => write!(f, "a finite number, {least} or above"),
            Self::Number { least, most } => write!(f, "a number from {least} to {most}"),
        }
    }
}
