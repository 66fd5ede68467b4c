//! Options out of maps as Ollama's requests and model parameters have them.
//!
//! Ollama lays three layers over each other: what is built in, the model's parameters, the request. Names
//! it does not know are worth a warning, values of the wrong kind are errors, and `null` is as good as
//! nothing. Whole numbers may be written `64.0`. Beyond Ollama's names this reads `logit_bias`,
//! `top_logprobs`, `max_tokens` and `ignore_eos`, which other servers have.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{GenerateOptions, OptionError, OptionWarning, SamplingOptions};

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
            "num_predict" | "max_tokens" => self.max_tokens = entry.count(BITS_32)?,
            "stop" => self.stop = entry.texts()?,
            "ignore_eos" => self.ignore_end = entry.flag()?,
            "num_ctx" => {
                let context: u32 = entry.integer("a whole number, 0 or above")?;
                self.context = (context > 0).then_some(context);
            }
            _ => return self.sampling.set(entry),
        }
        Ok(true)
    }
}

impl SamplingOptions {
    /// Sets one option; says whether there is such an option.
    fn set(&mut self, entry: &Entry<'_>) -> Result<bool, OptionError> {
        match entry.name {
            "temperature" => self.temperature = entry.number()?,
            "logit_bias" => self.logit_bias = entry.bias()?,
            "repeat_last_n" => self.repeat_last_n = entry.integer("a whole number, −1 or above")?,
            "repeat_penalty" => self.repeat_penalty = entry.number()?,
            "frequency_penalty" => self.frequency_penalty = entry.number()?,
            "presence_penalty" => self.presence_penalty = entry.number()?,
            "top_k" => self.top_k = entry.count(BITS_32)?.unwrap_or(0),
            "typical_p" => self.typical_p = entry.number()?,
            "top_p" => self.top_p = entry.number()?,
            "min_p" => self.min_p = entry.number()?,
            "seed" => self.seed = entry.count(BITS_64)?,
            "top_logprobs" => self.top_logprobs = Some(entry.integer("0 to 20")?),
            _ => return Ok(false),
        }
        Ok(true)
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

/// What a number too large for its option should have been.
const BITS_32: &str = "a whole number below 2³²";
const BITS_64: &str = "a whole number below 2⁶⁴";

/// One entry of a map of options.
struct Entry<'a> {
    name: &'a str,
    value: &'a Value,
}

impl Entry<'_> {
    fn number(&self) -> Result<f32, OptionError> {
        // Too large a number becomes an infinity, which no option accepts.
        self.value.as_f64().map(|number| number as f32).ok_or_else(|| self.wrong_type("a number"))
    }

    /// A whole number that fits `T`.
    fn integer<T: TryFrom<i128>>(&self, expected: &'static str) -> Result<T, OptionError> {
        let Value::Number(number) = self.value else {
            return Err(self.wrong_type("a whole number"));
        };
        let whole = match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(whole), _, _) => Some(i128::from(whole)),
            (_, Some(whole), _) => Some(i128::from(whole)),
            // The conversion saturates, far outside of every `T`.
            (_, _, Some(float)) if float.fract() == 0.0 => Some(float as i128),
            _ => None,
        };
        whole.and_then(|whole| T::try_from(whole).ok()).ok_or_else(|| OptionError::OutOfRange {
            option: self.name.to_owned(),
            found: number.to_string(),
            expected,
        })
    }

    /// A whole number where everything below zero means the same: nothing, or no limit.
    fn count<T: TryFrom<i128>>(&self, expected: &'static str) -> Result<Option<T>, OptionError> {
        let whole: i128 = self.integer(expected)?;
        if whole < 0 { Ok(None) } else { self.integer(expected).map(Some) }
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
                    (_, Some(number)) => number as f32,
                    _ => return Err(wrong_type(format!("{}[{id}]", self.name), value, "a number or false")),
                };
                let id = id.parse().map_err(|_| OptionError::OutOfRange {
                    option: self.name.to_owned(),
                    found: format!("the id `{id}`"),
                    expected: BITS_32,
                })?;
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
