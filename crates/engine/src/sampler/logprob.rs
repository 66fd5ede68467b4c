//! Log-probabilities of tokens, as the model gave them.

use super::rank::Select;
use super::weight::{below, scan, total_weight};

/// A token with its log-probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenLogprob {
    /// The token.
    pub id: u32,
    /// The natural logarithm of its probability.
    pub logprob: f32,
}

/// The distribution of the model's own logits.
pub(super) struct Logprobs<'a> {
    logits: &'a [f32],
    max: f32,
    /// The logarithm of the sum of all weights.
    ln_total: f64,
}

impl<'a> Logprobs<'a> {
    pub(super) fn new(logits: &'a [f32]) -> Self {
        let max = scan(logits).max;
        Self { logits, max, ln_total: total_weight(logits, max).ln() }
    }

    pub(super) fn of(&self, id: u32) -> f32 {
        (f64::from(below(self.logits[id as usize], self.max)) - self.ln_total) as f32
    }

    /// The likeliest tokens, the likeliest first.
    pub(super) fn top(&self, count: usize, select: &mut Select) -> Vec<TokenLogprob> {
        let ranks = select.first(self.logits, None, count).iter();
        ranks.map(|rank| TokenLogprob { id: rank.position(), logprob: self.of(rank.position()) }).collect()
    }
}
