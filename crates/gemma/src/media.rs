//! What a file takes besides text.

use rullama_gguf::Model;

use crate::names::{AUDIO, VISION};

/// What a model takes besides text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// Images.
    Vision,
    /// Sound.
    Audio,
}

impl Medium {
    /// Those for which a file has weights.
    pub fn of(model: &Model) -> Vec<Self> {
        let has = |beginnings: [&str; 2]| {
            model
                .tensors()
                .any(|tensor| beginnings.iter().any(|beginning| tensor.name.starts_with(beginning)))
        };
        let known = [(Self::Vision, VISION), (Self::Audio, AUDIO)];
        known.into_iter().filter(|&(_, beginnings)| has(beginnings)).map(|(medium, _)| medium).collect()
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vision => "vision",
            Self::Audio => "audio",
        }
    }
}
