//! Chooses the next token from the logits of a step.
//!
//! The steps, in llama.cpp's order, which Ollama uses too: suppression and bias, penalties (`adjust`),
//! `top_k`, `typical_p`, `top_p`, `min_p` (`filter`), temperature, draw (`candidates`). The GPU's
//! sampling is tested against [`Sampler::distribution`].

mod adjust;
mod candidates;
#[cfg(feature = "gpu")]
mod device;
mod error;
mod filter;
mod logprob;
mod random;
mod rank;
mod weight;

use adjust::Adjust;
use candidates::Candidates;
use filter::Filters;
use logprob::Logprobs;
use random::Random;
use rank::Rank;
use weight::{Scan, first_of, scan};

use crate::{Entropy, OptionError, SamplingOptions};

pub use error::SampleError;
pub use logprob::TokenLogprob;

/// Chooses tokens, one after the other, for one reply.
///
/// Tokens are dropped and weighted in this order: suppressed tokens and `logit_bias`; `repeat_penalty`,
/// then `frequency_penalty` and `presence_penalty`; `top_k`; `typical_p`; `top_p`; `min_p`; `temperature`.
/// From what is left one is drawn. With a temperature of 0 or below the likeliest token is taken after the
/// penalties, and of several the one with the lowest id; at every other place too, a tie goes to the lower
/// id.
///
/// A seed and logits that are the same to the bit give the same tokens on every platform and in every
/// build of this version: random numbers and exponentials are computed here, not by the platform.
///
/// Time is linear in the size of the vocabulary; what the filters keep is sorted besides. Nothing is
/// allocated after the first tokens, unless log-probabilities are asked for or the filters keep more
/// tokens than ever before.
///
/// ```
/// use rullama_engine::{Sampler, SamplingOptions};
///
/// let options = SamplingOptions { seed: Some(7), top_k: 2, top_p: 1.0, ..SamplingOptions::default() };
/// let mut sampler = Sampler::new(&options, &[])?;
/// let logits = [1.0, 3.0, 2.0, 0.5];
///
/// let distribution = sampler.distribution(&logits, &[])?;
/// assert_eq!(distribution.iter().map(|&(id, _)| id).collect::<Vec<_>>(), [1, 2]);
/// assert!((distribution[0].1 - 0.731).abs() < 1e-3);
///
/// let mut tokens = vec![];
/// for _ in 0..10 {
///     let sampled = sampler.sample(&logits, &tokens)?;
///     tokens.push(sampled.id);
/// }
/// assert!(tokens.iter().all(|id| [1, 2].contains(id)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sampler {
    adjust: Adjust,
    filters: Filters,
    options: SamplingOptions,
    random: Random,
    seed: u64,
    candidates: Candidates,
}

/// A token that was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// The token.
    pub id: u32,

    /// The natural logarithm of its probability, if [`SamplingOptions::top_logprobs`] asks for it.
    ///
    /// Log-probabilities are the model's own, before anything that these options change about them, as
    /// OpenAI, llama.cpp and Ollama have it: the logarithm of the softmax of the logits as they came. So
    /// a suppressed token may be among [`top`](Self::top), and the sampled one may not.
    pub logprob: Option<f32>,

    /// The likeliest tokens, the likeliest first, as many as were asked for.
    pub top: Vec<TokenLogprob>,
}

impl Sampler {
    /// A sampler that never chooses a suppressed token; ids that no token has are ignored.
    ///
    /// Its random numbers start at the seed in the options; without one, at a seed from [`Entropy::default`].
    ///
    /// # Errors
    ///
    /// If an option is out of its range.
    pub fn new(options: &SamplingOptions, suppressed: &[u32]) -> Result<Self, OptionError> {
        options.validate()?;
        let seed = options.seed.unwrap_or_else(|| Entropy::default().seed());
        Ok(Self {
            adjust: Adjust::new(options, suppressed),
            filters: Filters::new(options),
            options: options.clone(),
            random: Random::new(seed),
            seed,
            candidates: Candidates::default(),
        })
    }

    /// The seed at which the random numbers started.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Chooses a token from its logit and those of all others.
    ///
    /// `recent` holds the tokens so far, those of the prompt and the generated, for the penalties, which
    /// look at the last [`SamplingOptions::repeat_last_n`] of them. Every call uses up one random number,
    /// whatever the options.
    ///
    /// A logit of −∞ rules a token out; of +∞, it rules out all others.
    ///
    /// # Errors
    ///
    /// If a logit is not a number, or no token is left. No random number is then used up.
    pub fn sample(&mut self, logits: &[f32], recent: &[u32]) -> Result<Sampled, SampleError> {
        self.narrow(logits, recent)?;
        let id = self.candidates.at(self.random.next_unit());
        let (logprob, top) = match self.options.top_logprobs {
            None => (None, Vec::new()),
            Some(count) => {
                let logprobs = Logprobs::new(logits);
                (Some(logprobs.of(id)), logprobs.top(count as usize, &mut self.filters.select))
            }
        };
        Ok(Sampled { id, logprob, top })
    }

    /// Uses up the random number of one token that a device has chosen in place of this sampler.
    pub(crate) fn skip(&mut self) {
        self.random.next_unit();
    }

    /// The tokens that [`sample`](Self::sample) would choose from, with their probabilities, the most
    /// probable first. Uses up no random number.
    ///
    /// # Errors
    ///
    /// As for [`sample`](Self::sample).
    pub fn distribution(&mut self, logits: &[f32], recent: &[u32]) -> Result<Vec<(u32, f32)>, SampleError> {
        self.narrow(logits, recent)?;
        let Candidates { ids, weights, .. } = &self.candidates;
        let total = self.candidates.total();
        let mut ranks: Vec<_> = weights
            .iter()
            .zip(ids)
            .filter(|&(&weight, _)| weight > 0.0)
            .map(|(&weight, &id)| Rank::new(weight, id))
            .collect();
        ranks.sort_unstable();
        Ok(ranks.iter().map(|rank| (rank.position(), (f64::from(rank.key()) / total) as f32)).collect())
    }

    /// Sets the candidates to what can be drawn, with weights.
    fn narrow(&mut self, logits: &[f32], recent: &[u32]) -> Result<(), SampleError> {
        let mut max = largest(logits)?;
        let adjusted = match self.adjust.apply(logits, recent) {
            None => logits,
            Some(adjusted) => {
                max = scan(adjusted).max;
                adjusted
            }
        };
        if max == f32::NEG_INFINITY {
            return Err(SampleError::AllSuppressed { tokens: logits.len() });
        }
        if self.options.temperature <= 0.0 {
            self.candidates.set_one(first_of(adjusted, max) as u32);
            return Ok(());
        }
        let max = self.filters.apply(adjusted, max, &mut self.candidates);
        self.candidates.weigh(max, self.options.temperature);
        Ok(())
    }
}

/// The largest logit, if they are fit for use.
fn largest(logits: &[f32]) -> Result<f32, SampleError> {
    let Scan { max, has_nan } = scan(logits);
    if logits.is_empty() {
        return Err(SampleError::Empty);
    }
    if has_nan || max == f32::NEG_INFINITY {
        let first = logits.iter().position(|logit| logit.is_nan()).unwrap_or(0);
        return Err(SampleError::NotFinite { id: first as u32, found: logits[first] });
    }
    Ok(max)
}
