//! The `think` field of a request.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::{ChatError, json};

/// What a request's `think` field asks for: `true`, `false`, or a level.
///
/// Gemma 4 knows no levels; each of them means "on". They are kept apart so that a face can hand a request
/// on unchanged. A request without the field gets Ollama's default for models that can think, which is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[expect(missing_docs, reason = "the variants are the words of the request")]
pub enum Think {
    Off,
    #[default]
    On,
    Low,
    Medium,
    High,
    Max,
}

impl Think {
    /// Whether the model is asked to think.
    #[must_use]
    pub fn is_on(self) -> bool {
        self != Self::Off
    }

    /// Reads the field's value. `null` is the same as leaving it out.
    ///
    /// # Errors
    ///
    /// When it is neither a boolean nor a string, or a string that names no level.
    pub fn from_value(value: &Value) -> Result<Self, ChatError> {
        match value {
            Value::Null => Ok(Self::default()),
            Value::Bool(false) => Ok(Self::Off),
            Value::Bool(true) => Ok(Self::On),
            Value::String(level) => match level.as_str() {
                "low" => Ok(Self::Low),
                "medium" => Ok(Self::Medium),
                "high" => Ok(Self::High),
                "max" => Ok(Self::Max),
                _ => Err(ChatError::UnknownThinkLevel { found: level.clone() }),
            },
            other => Err(json::wrong_type("think", other, "a boolean or a level")),
        }
    }
}

impl<'de> Deserialize<'de> for Think {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(&Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl Serialize for Think {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_bool(false),
            Self::On => serializer.serialize_bool(true),
            Self::Low => serializer.serialize_str("low"),
            Self::Medium => serializer.serialize_str("medium"),
            Self::High => serializer.serialize_str("high"),
            Self::Max => serializer.serialize_str("max"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_the_words_of_requests() {
        for (text, think, on) in [
            ("false", Think::Off, false),
            ("true", Think::On, true),
            ("\"low\"", Think::Low, true),
            ("\"medium\"", Think::Medium, true),
            ("\"high\"", Think::High, true),
            ("\"max\"", Think::Max, true),
        ] {
            let read: Think = serde_json::from_str(text).unwrap();
            assert_eq!((read, read.is_on()), (think, on));
            assert_eq!(serde_json::to_string(&think).unwrap(), text);
        }
        assert_eq!(Think::from_value(&Value::Null).unwrap(), Think::On);
        assert_eq!(Think::from_value(&"much".into()).unwrap_err().code(), "chat.unknown_think_level");
        assert_eq!(Think::from_value(&1.into()).unwrap_err().code(), "chat.wrong_type");
    }
}
