//! Which tokens stay: `top_k`, `typical_p`, `top_p` and `min_p`, in this order, each on what the one
//! before it left.
//!
//! No filter sorts the vocabulary unless it keeps nearly all of it. What a filter needs in order it takes
//! in growing blocks from [`Select`], each one pass over the logits.

use super::candidates::Candidates;
use super::rank::{Rank, Select};
use super::weight::{below, exp, total_weight};
use crate::SamplingOptions;

/// Tokens in the first block: more than most steps need, and still nothing beside a pass over all logits.
const FIRST_BLOCK: usize = 256;

/// How much larger each block is than the one before, so that few passes are needed even for all tokens.
const BLOCK_GROWTH: usize = 8;

/// The four filters, with the buffers they need.
#[derive(Debug, Clone)]
pub(super) struct Filters {
    /// 0 is off.
    top_k: usize,
    typical_p: Option<f64>,
    top_p: Option<f64>,
    /// How far a logit may be below the largest.
    min_p: Option<f32>,
    pub(super) select: Select,
    kept: Vec<Rank>,
    keys: Vec<f32>,
}

impl Filters {
    pub(super) fn new(options: &SamplingOptions) -> Self {
        let unless_one = |p: f32| (p < 1.0).then_some(f64::from(p));
        Self {
            top_k: options.top_k as usize,
            typical_p: unless_one(options.typical_p),
            top_p: unless_one(options.top_p),
            // On logits rather than on probabilities: exact, and 1 keeps nothing but the largest.
            min_p: (options.min_p > 0.0).then(|| f64::from(options.min_p).ln() as f32),
            select: Select::default(),
            kept: Vec::new(),
            keys: Vec::new(),
        }
    }

    /// Sets the candidates to what the filters leave of all tokens, of which the largest logit is `max`, and
    /// returns the largest that is left: `typical_p` may drop the likeliest token.
    ///
    /// They come in the order of their ranks if a filter other than `min_p` is on, otherwise in that of
    /// their ids.
    pub(super) fn apply(&mut self, logits: &[f32], max: f32, candidates: &mut Candidates) -> f32 {
        if (1..logits.len()).contains(&self.top_k) {
            candidates.set_ranked(logits, self.select.first(logits, None, self.top_k));
            if let Some(p) = self.typical_p {
                self.typical(&candidates.logits, max, p);
                candidates.keep(self.kept.iter().map(|rank| rank.position()));
            }
            self.top_p_of_ranked(candidates);
        } else if let Some(p) = self.typical_p {
            self.typical(logits, max, p);
            candidates.set_ranked(logits, &self.kept);
            self.top_p_of_ranked(candidates);
        } else if let Some(p) = self.top_p {
            let mass = Mass { goal: p * total_weight(logits, max), exceed: false };
            mass.take(&mut self.select, logits, |at| exp(below(logits[at], max)), &mut self.kept);
            candidates.set_ranked(logits, &self.kept);
        } else if let Some(lowest) = self.min_p {
            candidates.clear();
            for (id, &logit) in (0..).zip(logits) {
                if below(logit, max) >= lowest {
                    candidates.push(id, logit);
                }
            }
            return max;
        } else {
            candidates.set_all(logits);
            return max;
        }
        self.min_p_of_ranked(candidates);
        candidates.logits.first().copied().unwrap_or(max)
    }

    /// Keeps the tokens whose information content, −ln p, is nearest to the mean; in order of rank.
    fn typical(&mut self, logits: &[f32], max: f32, p: f64) {
        // −ln p and its mean differ from these by the same ln of the total, so it cancels out.
        let mut total = 0.0;
        let mut mean = 0.0;
        for &logit in logits {
            let distance = below(logit, max);
            let weight = f64::from(exp(distance));
            total += weight;
            // At an infinite distance there is no weight, and no product.
            mean += if weight > 0.0 { weight * f64::from(distance) } else { 0.0 };
        }
        mean /= total;

        self.keys.clear();
        self.keys.extend(logits.iter().map(|&logit| -(f64::from(below(logit, max)) - mean).abs() as f32));
        let mass = Mass { goal: p * total, exceed: true };
        mass.take(&mut self.select, &self.keys, |at| exp(below(logits[at], max)), &mut self.kept);
        for rank in &mut self.kept {
            *rank = Rank::new(logits[rank.position() as usize], rank.position());
        }
        self.kept.sort_unstable();
    }

    fn top_p_of_ranked(&self, candidates: &mut Candidates) {
        if let (Some(p), Some(&max)) = (self.top_p, candidates.logits.first()) {
            candidates.weigh(max, 1.0);
            let mut mass = Mass { goal: p * candidates.total(), exceed: false }.counter();
            let last = candidates.weights.iter().position(|&weight| mass.reached_with(weight));
            candidates.truncate(last.map_or(candidates.ids.len(), |last| last + 1));
        }
    }

    fn min_p_of_ranked(&self, candidates: &mut Candidates) {
        if let (Some(lowest), Some(&max)) = (self.min_p, candidates.logits.first()) {
            let kept = candidates.logits.partition_point(|&logit| below(logit, max) >= lowest);
            candidates.truncate(kept);
        }
    }
}

/// A sum of weights to be reached, or to be exceeded.
#[derive(Debug, Clone, Copy)]
struct Mass {
    goal: f64,
    exceed: bool,
}

impl Mass {
    fn counter(self) -> MassCounter {
        MassCounter { mass: self, sum: 0.0 }
    }

    /// Takes keys in their order until their weights make up this mass.
    fn take(self, select: &mut Select, keys: &[f32], weight: impl Fn(usize) -> f32, taken: &mut Vec<Rank>) {
        taken.clear();
        let mut counter = self.counter();
        let mut size = FIRST_BLOCK;
        loop {
            let block = select.first(keys, taken.last().copied(), size);
            for &rank in block {
                taken.push(rank);
                if counter.reached_with(weight(rank.position() as usize)) {
                    return;
                }
            }
            if block.len() < size {
                return;
            }
            size *= BLOCK_GROWTH;
        }
    }
}

struct MassCounter {
    mass: Mass,
    sum: f64,
}

impl MassCounter {
    /// Adds a weight; says whether that is enough.
    fn reached_with(&mut self, weight: f32) -> bool {
        self.sum += f64::from(weight);
        if self.mass.exceed { self.sum > self.mass.goal } else { self.sum >= self.mass.goal }
    }
}
