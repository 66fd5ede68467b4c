//! The tokens that are still in question.

use super::rank::Rank;
use super::weight::{below, exp};

/// Tokens with their logits, and in the end their weights: numbers in proportion to their probabilities.
#[derive(Debug, Clone, Default)]
pub(super) struct Candidates {
    pub(super) ids: Vec<u32>,
    pub(super) logits: Vec<f32>,
    pub(super) weights: Vec<f32>,
}

impl Candidates {
    pub(super) fn clear(&mut self) {
        self.ids.clear();
        self.logits.clear();
    }

    pub(super) fn push(&mut self, id: u32, logit: f32) {
        self.ids.push(id);
        self.logits.push(logit);
    }

    /// Only this token.
    pub(super) fn set_one(&mut self, id: u32) {
        self.clear();
        self.push(id, 0.0);
        self.weigh(0.0, 1.0);
    }

    /// Every token, also those that cannot be drawn: they have no weight.
    pub(super) fn set_all(&mut self, logits: &[f32]) {
        self.clear();
        self.ids.extend((0..).take(logits.len()));
        self.logits.extend_from_slice(logits);
    }

    /// The tokens of these ranks among all logits.
    pub(super) fn set_ranked(&mut self, logits: &[f32], ranks: &[Rank]) {
        self.clear();
        for rank in ranks {
            self.push(rank.position(), logits[rank.position() as usize]);
        }
    }

    /// Keeps the candidates at these positions, which ascend.
    pub(super) fn keep(&mut self, positions: impl Iterator<Item = u32>) {
        let mut kept = 0;
        for position in positions {
            self.ids[kept] = self.ids[position as usize];
            self.logits[kept] = self.logits[position as usize];
            kept += 1;
        }
        self.truncate(kept);
    }

    pub(super) fn truncate(&mut self, count: usize) {
        self.ids.truncate(count);
        self.logits.truncate(count);
    }

    /// Sets the weights at a temperature. `max` is the largest logit.
    pub(super) fn weigh(&mut self, max: f32, temperature: f32) {
        self.weights.clear();
        self.weights.extend(self.logits.iter().map(|&logit| exp(below(logit, max) / temperature)));
    }

    /// The sum of the weights, added from the first to the last.
    pub(super) fn total(&self) -> f64 {
        self.weights.iter().map(|&weight| f64::from(weight)).sum()
    }

    /// The candidate at which the weights, added from the first on, exceed this part of their total.
    ///
    /// `part` is below 1, so it is never past the last; and a candidate without weight is never it.
    pub(super) fn at(&self, part: f64) -> u32 {
        let target = part * self.total();
        let mut sum = 0.0;
        let reached = self.weights.iter().position(|&weight| {
            sum += f64::from(weight);
            sum > target
        });
        self.ids[reached.unwrap_or(0)]
    }
}
