//! How tokens are chosen, and how kernels see it.

use bytemuck::{Pod, Zeroable};

use crate::params::SampleParams;

/// How the tokens of a reply are chosen. The steps are taken in the order of the fields, but for the temperature, which
/// comes last.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// Divides the logits. 0 or below takes the likeliest token, the one with the lowest id of several.
    pub temperature: f32,
    /// Added to the logits of these tokens; −∞ rules one out. Ids that no token has are ignored.
    pub bias: Vec<(u32, f32)>,
    /// How many of the latest tokens are penalised. As many are remembered on the GPU.
    pub repeat_last_n: usize,
    /// Divides the logits above zero of tokens seen there, and multiplies the others. 1 is off.
    pub repeat_penalty: f32,
    /// Subtracted once for each time that a token was seen there. 0 is off.
    pub frequency_penalty: f32,
    /// Subtracted from what was seen there, however often. 0 is off.
    pub presence_penalty: f32,
    /// Keeps this many of the likeliest tokens. 0 is off.
    pub top_k: u32,
    /// Keeps the likeliest tokens until their probabilities add up to this. 1 is off, 0 keeps one.
    pub top_p: f32,
    /// Keeps tokens at least this many times as probable as the likeliest. 0 is off.
    pub min_p: f32,
    /// Where the random numbers start: the state of xoshiro128++, not all zero.
    pub random: [u32; 4],
}

impl Sampling {
    /// The likeliest token each time, without biases and penalties.
    pub const GREEDY: Self = Self {
        temperature: 0.0,
        bias: Vec::new(),
        repeat_last_n: 0,
        repeat_penalty: 1.0,
        frequency_penalty: 0.0,
        presence_penalty: 0.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        random: [1, 2, 3, 4],
    };

    /// How many tokens the penalties look at, if there are any.
    pub(super) fn window(&self) -> usize {
        let off = self.repeat_penalty == 1.0 && self.frequency_penalty == 0.0 && self.presence_penalty == 0.0;
        if off { 0 } else { self.repeat_last_n }
    }

    /// The ids and biases of the tokens that have any, each once: kernels change several logits at a time.
    pub(super) fn merged_bias(&self, vocabulary: u32) -> Vec<[u32; 2]> {
        let mut bias: Vec<_> = self.bias.iter().copied().filter(|&(id, _)| id < vocabulary).collect();
        bias.sort_by_key(|&(id, _)| id);
        bias.dedup_by(|later, first| {
            let same = later.0 == first.0;
            if same {
                first.1 += later.1;
            }
            same
        });
        bias.into_iter().map(|(id, bias)| [id, bias.to_bits()]).collect()
    }
}

impl SampleParams {
    /// Bits of `filters`.
    const TOP_P: u32 = 1;
    const MIN_P: u32 = 2;

    pub(super) fn new(sampling: &Sampling, vocabulary: u32, biases: usize, slot: u32) -> Self {
        let Sampling { top_k, top_p, min_p, temperature, .. } = *sampling;
        let part = (f64::from(top_p) * 2_f64.powi(64)) as u64;
        let on = |flag: u32, condition: bool| if condition { flag } else { 0 };
        // GPUs may take numbers smaller than these for zero, and a larger one times 87 is infinite.
        let temperature = if temperature > 0.0 { temperature.clamp(f32::MIN_POSITIVE, 1e36) } else { 0.0 };
        Self {
            vocabulary,
            // Zero keeps all tokens.
            top_k: if top_k < vocabulary { top_k } else { 0 },
            top_p: [part as u32, (part >> 32) as u32],
            temperature,
            lowest: if min_p > 0.0 { f64::from(min_p).ln() as f32 } else { 0.0 },
            filters: on(Self::TOP_P, top_p < 1.0) | on(Self::MIN_P, min_p > 0.0),
            biases: biases as u32,
            repeat: sampling.repeat_penalty,
            frequency: sampling.frequency_penalty,
            presence: sampling.presence_penalty,
            window: sampling.window() as u32,
            slot,
        }
    }

    pub(super) fn has_top_p(&self) -> bool {
        self.filters & Self::TOP_P != 0
    }
}

/// As `State` in `wgsl/sample/params.wgsl`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct State {
    token: u32,
    status: u32,
    slot: u32,
    length: u32,
    random: [u32; 4],
}

impl State {
    /// After `recent` tokens in a window of `window`.
    pub(super) fn new(random: [u32; 4], recent: usize, window: usize) -> Self {
        let slot = if recent == window { 0 } else { recent as u32 };
        Self { token: 0, status: 0, slot, length: recent as u32, random }
    }
}

/// How often each token of the vocabulary is among the recent ones, and the slot it was last seen in.
pub(super) fn seen(recent: &[u32], vocabulary: u32) -> Vec<[u32; 2]> {
    let mut seen = vec![[0; 2]; vocabulary as usize];
    for (slot, &id) in recent.iter().enumerate() {
        if let Some([count, last]) = seen.get_mut(id as usize) {
            *count += 1;
            *last = slot as u32;
        }
    }
    seen
}
