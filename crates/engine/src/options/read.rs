//! Options out of maps as Ollama's requests and model parameters have them.
//!
//! Ollama lays three layers over each other: what is built in, the model's parameters, the request. Names
//! it does not know are worth a warning, values of the wrong kind are errors, and `null` is as good as
//! nothing. Whole numbers may be written `64.0`. Beyond Ollama's names this reads `logit_bias`,
//! `top_logprobs`, `max_tokens` and `ignore_eos`, which other servers have.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{GenerateOptions, OptionError, OptionRange, OptionWarning, SamplingOptions};

/// Ollama's options that say how a model is loaded and run, which this engine decides by itself.
const NOT_USED: [&str; 7] =
    ["num_batch", "num_gpu", "main_gpu", "use_mmap", "num_thread", "num_keep", "draft_num_predict"];

impl GenerateOptions {
    /// The options of a request to a model with parameters of its own.
    ///
    /// What the request does not say, the model does; what neither says has its default. The warnings name
    /// options that were passed over, once each.
    ///
    /// # Errors
    ///
    /// The first option with a value of the wrong kind or out of range.
    pub fn from_layers(
        model: &Map<String, Value>,
        request: &Map<String, Value>,
    ) -> Result<(Self, Vec<OptionWarning>), OptionError> {
        let mut options = Self::default();
        let mut warnings = options.apply(model)?;
        for warning in options.apply(request)? {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        Ok((options, warnings))
    }

    /// Lays a map of options over these, and returns warnings about those that were passed over.
    ///
    /// # Errors
    ///
    /// The first option with a value of the wrong kind or out of range. These options are then as they
    /// were before.
    pub fn apply(&mut self, layer: &Map<String, Value>) -> Result<Vec<OptionWarning>, OptionError> {
        let mut options = self.clone();
        let mut warnings = Vec::new();
        for (name, value) in layer.iter().filter(|(_, value)| !value.is_null()) {
            let entry = Entry { name, value };
            if !options.set(&entry)? {
                let option = name.clone();
                warnings.push(match NOT_USED.contains(&name.as_str()) {
                    true => OptionWarning::NotUsed { option },
                    false => OptionWarning::Unknown { option },
                });
            }
        }
        options.sampling.validate()?;
        *self = options;
        Ok(warnings)
    }

    /// Sets one option; says whether there is such an option.
    fn set(&mut self, entry: &Entry<'_>) -> Result<bool, OptionError> {
        match entry.name {
            "num_predict" | "max_tokens" => {
                self.max_tokens = u32::try_from(entry.whole(OptionRange::MAX_TOKENS)?).ok();
            }
            "stop" => self.stop = entry.texts()?,
            "ignore_eos" => self.ignore_end = entry.flag()?,
            "num_ctx" => self.context = u32::try_from(entry.whole(OptionRange::CONTEXT)?).ok(),
            _ => return self.sampling.set(entry),
        }
        Ok(true)
    }
}

impl SamplingOptions {
    /// Sets one option; says whether there is such an option.
    fn set(&mut self, entry: &Entry<'_>) -> Result<bool, OptionError> {
        match entry.name {
            "temperature" => self.temperature = entry.number(OptionRange::TEMPERATURE)?,
            "logit_bias" => self.logit_bias = entry.bias()?,
            "repeat_last_n" => self.repeat_last_n = entry.whole(OptionRange::REPEAT_LAST_N)? as i32,
            "repeat_penalty" => self.repeat_penalty = entry.number(OptionRange::REPEAT_PENALTY)?,
            "frequency_penalty" => self.frequency_penalty = entry.number(OptionRange::FINITE)?,
            "presence_penalty" => self.presence_penalty = entry.number(OptionRange::FINITE)?,
            "top_k" => self.top_k = u32::try_from(entry.whole(OptionRange::TOP_K)?).unwrap_or(0),
            "typical_p" => self.typical_p = entry.number(OptionRange::PROBABILITY)?,
            "top_p" => self.top_p = entry.number(OptionRange::PROBABILITY)?,
            "min_p" => self.min_p = entry.number(OptionRange::PROBABILITY)?,
            "seed" => {
                let seed = entry.whole(OptionRange::SEED)?;
                // Negative seeds wrap, as they do in llama.cpp.
                self.seed = (seed != -1).then_some(seed as u64);
            }
            "top_logprobs" => self.top_logprobs = Some(entry.whole(OptionRange::TOP_LOGPROBS)? as u32),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl OptionRange {
    /// Refuses a JSON value that is no number, or is outside of the range, by the option's name.
    ///
    /// # Errors
    ///
    /// What is wrong with the value.
    pub fn check_json(self, option: &str, value: &Value) -> Result<(), OptionError> {
        let entry = Entry { name: option, value };
        match self {
            Self::Whole { .. } => entry.whole(self).map(drop),
            Self::Number { .. } | Self::AboveZero => entry.number(self).map(drop),
        }
    }
}

impl TryFrom<Map<String, Value>> for SamplingOptions {
    type Error = OptionError;

    fn try_from(map: Map<String, Value>) -> Result<Self, OptionError> {
        let mut options = Self::default();
        for (name, value) in map.iter().filter(|(_, value)| !value.is_null()) {
            if !options.set(&Entry { name, value })? {
                return Err(OptionError::Unknown { option: name.clone() });
            }
        }
        options.validate()?;
        Ok(options)
    }
}

impl TryFrom<Map<String, Value>> for GenerateOptions {
    type Error = OptionError;

    fn try_from(map: Map<String, Value>) -> Result<Self, OptionError> {
        let mut options = Self::default();
        let mut warnings = options.apply(&map)?.into_iter();
        match warnings.find(|warning| matches!(warning, OptionWarning::Unknown { .. })) {
            Some(unknown) => Err(OptionError::Unknown { option: unknown.option().to_owned() }),
            None => Ok(options),
        }
    }
}

/// One entry of a map of options.
struct Entry<'a> {
    name: &'a str,
    value: &'a Value,
}

impl Entry<'_> {
    /// A number in `range`.
    fn number(&self, range: OptionRange) -> Result<f32, OptionError> {
        let Value::Number(number) = self.value else {
            return Err(self.wrong_type("a number"));
        };
        // A number that is too large becomes an infinity, which is in no range.
        let value = number.as_f64().map_or(f32::NAN, |value| value as f32);
        if range.holds(value) { Ok(value) } else { Err(range.error(self.name, number)) }
    }

    /// A whole number in `range`, which may be written with a fraction of zero.
    fn whole(&self, range: OptionRange) -> Result<i128, OptionError> {
        let Value::Number(number) = self.value else {
            return Err(self.wrong_type("a whole number"));
        };
        let whole = match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(whole), _, _) => Some(i128::from(whole)),
            (_, Some(whole), _) => Some(i128::from(whole)),
            // The conversion saturates, far outside of every range.
            (_, _, Some(float)) if float.fract() == 0.0 => Some(float as i128),
            _ => None,
        };
        whole.filter(|&whole| range.holds_whole(whole)).ok_or_else(|| range.error(self.name, number))
    }

    fn flag(&self) -> Result<bool, OptionError> {
        self.value.as_bool().ok_or_else(|| self.wrong_type("true or false"))
    }

    /// A list of strings, or a single one.
    fn texts(&self) -> Result<Vec<String>, OptionError> {
        match self.value {
            Value::String(text) => Ok(vec![text.clone()]),
            Value::Array(texts) => texts
                .iter()
                .enumerate()
                .map(|(index, value)| match value {
                    Value::String(text) => Ok(text.clone()),
                    _ => Err(wrong_type(format!("{}[{index}]", self.name), value, "a string")),
                })
                .collect(),
            _ => Err(self.wrong_type("a list of strings")),
        }
    }

    /// Numbers by token id; `false` rules a token out.
    fn bias(&self) -> Result<BTreeMap<u32, f32>, OptionError> {
        let Value::Object(entries) = self.value else {
            return Err(self.wrong_type("an object from token ids to numbers"));
        };
        entries
            .iter()
            .map(|(id, value)| {
                let bias = match (value, value.as_f64()) {
                    (Value::Bool(false), _) => f32::NEG_INFINITY,
                    (_, Some(number)) if OptionRange::FINITE.holds(number as f32) => number as f32,
                    (_, Some(_)) => {
                        return Err(OptionRange::FINITE.error(&format!("{}[{id}]", self.name), value));
                    }
                    _ => return Err(wrong_type(format!("{}[{id}]", self.name), value, "a number or false")),
                };
                let ids = OptionRange::Whole { least: 0, most: i128::from(u32::MAX) };
                let id = id.parse().map_err(|_| ids.error(self.name, format!("the id `{id}`")))?;
                Ok((id, bias))
            })
            .collect()
    }

    fn wrong_type(&self, expected: &'static str) -> OptionError {
        wrong_type(self.name.to_owned(), self.value, expected)
    }
}

fn wrong_type(option: String, value: &Value, expected: &'static str) -> OptionError {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    OptionError::WrongType { option, found, expected }
}
