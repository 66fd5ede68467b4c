//! What is changed about the model's logits before any token is dropped: bias, then penalties.
//!
//! Both touch a handful of tokens, and with the default options none at all; then nothing is copied.

use crate::SamplingOptions;

/// Suppression, bias and penalties, with the buffers they need.
#[derive(Debug, Clone)]
pub(super) struct Adjust {
    /// What is added to the logits of these tokens; −∞ for the suppressed.
    bias: Vec<(u32, f32)>,
    penalties: Option<Penalties>,
    adjusted: Vec<f32>,
}

impl Adjust {
    pub(super) fn new(options: &SamplingOptions, suppressed: &[u32]) -> Self {
        let bias = options.logit_bias.iter().map(|(&id, &bias)| (id, bias));
        let suppressed = suppressed.iter().map(|&id| (id, f32::NEG_INFINITY));
        Self {
            bias: bias.chain(suppressed).collect(),
            penalties: Penalties::new(options),
            adjusted: Vec::new(),
        }
    }

    /// The tokens with a bias; suppressed tokens have −∞.
    #[cfg(feature = "gpu")]
    pub(super) fn bias(&self) -> &[(u32, f32)] {
        &self.bias
    }

    /// The logits with everything applied, or `None` if that changes nothing.
    pub(super) fn apply(&mut self, logits: &[f32], recent: &[u32]) -> Option<&[f32]> {
        let penalised = self.penalties.as_ref().map_or(&[][..], |penalties| penalties.window(recent));
        if self.bias.is_empty() && penalised.is_empty() {
            return None;
        }
        self.adjusted.clear();
        self.adjusted.extend_from_slice(logits);
        for &(id, bias) in &self.bias {
            if let Some(logit) = self.adjusted.get_mut(id as usize) {
                *logit = biased(*logit, bias);
            }
        }
        if let Some(penalties) = &mut self.penalties {
            penalties.apply(&mut self.adjusted, penalised);
        }
        Some(&self.adjusted)
    }
}

/// Adds a bias. An infinite logit is a certainty that no finite bias changes; −∞ overrules even that.
fn biased(logit: f32, bias: f32) -> f32 {
    match bias {
        f32::NEG_INFINITY => bias,
        _ if logit.is_infinite() => logit,
        _ => logit + bias,
    }
}

/// The three penalties on tokens that were seen lately.
#[derive(Debug, Clone)]
struct Penalties {
    /// How many of the latest tokens count.
    last: usize,
    repeat: f32,
    frequency: f32,
    presence: f32,
    /// How often each token was seen; all zero between calls.
    seen: Vec<u32>,
}

impl Penalties {
    /// `None` if the options leave all of them off.
    fn new(options: &SamplingOptions) -> Option<Self> {
        let penalties = Self {
            last: usize::try_from(options.repeat_last_n).unwrap_or(usize::MAX),
            repeat: options.repeat_penalty,
            frequency: options.frequency_penalty,
            presence: options.presence_penalty,
            seen: Vec::new(),
        };
        let off = penalties.last == 0
            || penalties.repeat == 1.0 && penalties.frequency == 0.0 && penalties.presence == 0.0;
        (!off).then_some(penalties)
    }

    fn window<'a>(&self, recent: &'a [u32]) -> &'a [u32] {
        &recent[recent.len().saturating_sub(self.last)..]
    }

    fn apply(&mut self, logits: &mut [f32], window: &[u32]) {
        // A count for every token rather than a map: the window may be the whole context.
        self.seen.resize(logits.len(), 0);
        for &id in window {
            if let Some(seen) = self.seen.get_mut(id as usize) {
                *seen += 1;
            }
        }
        for &id in window {
            let id = id as usize;
            // Taking the count leaves zero, so each token is penalised once.
            let seen = self.seen.get_mut(id).map_or(0, std::mem::take);
            if seen > 0 && logits[id].is_finite() {
                logits[id] = self.penalised(logits[id], seen);
            }
        }
    }

    fn penalised(&self, logit: f32, seen: u32) -> f32 {
        // Dividing a number below zero would make the token more likely.
        let repeated = if logit <= 0.0 { logit * self.repeat } else { logit / self.repeat };
        repeated - (seen as f32 * self.frequency + self.presence)
    }
}
