//! What a request may ask of generation, with Ollama's names and Ollama's defaults for Gemma 4.
//!
//! The types hold whatever a caller sets; [`SamplingOptions::validate`] checks the values against the table in
//! `range`. Maps of options, from a request or a model's parameters, are read in `read`.

mod bias;
mod error;
mod range;
mod read;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use error::{OptionError, OptionWarning};
pub use range::OptionRange;

/// How the next token is chosen from the logits.
///
/// [`Default`] is what Ollama does for Gemma 4. The steps are taken in the order of the fields, but for
/// the temperature, which comes last: `top_p` and `min_p` see probabilities before it.
///
/// In JSON an option that is left out has its default, and an unknown one is an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub struct SamplingOptions {
    /// Divides the logits: below 1 the likely tokens become likelier, above 1 the unlikely ones. 0 takes
    /// the likeliest token always, the one with the lowest id of several.
    pub temperature: f32,

    /// Added to the logits of these tokens; −∞ rules a token out. Ids that no token has are ignored. In
    /// JSON an object from ids to numbers, with `false` for −∞.
    #[serde(with = "bias")]
    pub logit_bias: BTreeMap<u32, f32>,

    /// How many of the latest tokens, prompt included, the three penalties look at. 0 is none, −1 all.
    pub repeat_last_n: i32,

    /// Divides the logits above zero of tokens seen there, and multiplies the others: above 1 makes
    /// repetition less likely. 1 is off.
    pub repeat_penalty: f32,

    /// Subtracted from the logit of a token once for each time it was seen there. 0 is off.
    pub frequency_penalty: f32,

    /// Subtracted from the logit of a token that was seen there, however often. 0 is off.
    pub presence_penalty: f32,

    /// Keeps this many of the most probable tokens. 0 is off.
    pub top_k: u32,

    /// Keeps the tokens whose information content is nearest to the expected one, until their
    /// probabilities add up to more than this. 1 is off.
    pub typical_p: f32,

    /// Keeps the most probable tokens until their probabilities add up to this. 1 is off, 0 keeps one.
    pub top_p: f32,

    /// Keeps tokens at least this many times as probable as the most probable one. 0 is off.
    pub min_p: f32,

    /// Where the random numbers start. The same seed and the same logits give the same tokens, on every
    /// platform. `None`, in JSON −1 or nothing, takes another seed for each reply. Other negative numbers in JSON are
    /// seeds like any other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,

    /// Asks for the log-probability of each sampled token, and of this many of the likeliest tokens beside
    /// it, at most 20. `Some(0)` asks for that of the sampled token alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_logprobs: Option<u32>,
}

impl SamplingOptions {
    /// The likeliest token, always: what runs are compared by.
    pub const GREEDY: Self = Self::with_temperature(0.0);

    const fn with_temperature(temperature: f32) -> Self {
        Self {
            temperature,
            logit_bias: BTreeMap::new(),
            repeat_last_n: 64,
            repeat_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            top_k: 64,
            typical_p: 1.0,
            top_p: 0.95,
            min_p: 0.0,
            seed: None,
            top_logprobs: None,
        }
    }

    /// Checks every number against its [`OptionRange`].
    ///
    /// # Errors
    ///
    /// Names the first option whose value is outside of its range.
    pub fn validate(&self) -> Result<(), OptionError> {
        OptionRange::TEMPERATURE.check("temperature", self.temperature)?;
        for (id, &bias) in self.logit_bias.iter().filter(|&(_, &bias)| bias != f32::NEG_INFINITY) {
            OptionRange::FINITE.check(&format!("logit_bias[{id}]"), bias)?;
        }
        OptionRange::REPEAT_LAST_N.check_whole("repeat_last_n", self.repeat_last_n)?;
        OptionRange::REPEAT_PENALTY.check("repeat_penalty", self.repeat_penalty)?;
        OptionRange::FINITE.check("frequency_penalty", self.frequency_penalty)?;
        OptionRange::FINITE.check("presence_penalty", self.presence_penalty)?;
        OptionRange::PROBABILITY.check("typical_p", self.typical_p)?;
        OptionRange::PROBABILITY.check("top_p", self.top_p)?;
        OptionRange::PROBABILITY.check("min_p", self.min_p)?;
        OptionRange::TOP_LOGPROBS.check_whole("top_logprobs", self.top_logprobs.unwrap_or(0))
    }
}

impl Default for SamplingOptions {
    fn default() -> Self {
        Self::with_temperature(1.0)
    }
}

/// How a reply is generated: how tokens are chosen, and what ends it.
///
/// In JSON the options of [`SamplingOptions`] stand beside those of this type.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub struct GenerateOptions {
    /// How the next token is chosen.
    pub sampling: SamplingOptions,

    /// The most tokens to generate: `num_predict` or `max_tokens`. `None`, in JSON −1 or −2, sets no limit but the
    /// context.
    pub max_tokens: Option<u32>,

    /// Texts that end the reply; neither they nor what follows is part of it.
    pub stop: Vec<String>,

    /// Whether the tokens that end a reply do not end this one: `ignore_eos`. For measurements.
    pub ignore_end: bool,

    /// How many tokens the context should hold: `num_ctx`. `None` leaves it to the engine.
    pub context: Option<u32>,
}
