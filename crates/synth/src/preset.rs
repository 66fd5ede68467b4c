//! The models that can be made, by name.

use std::{fmt, str::FromStr};

use crate::{
    SynthError,
    error::listed,
    shape::{self, Shape},
    vocabulary::{REAL_VOCABULARY, TINY_VOCABULARY},
};

/// A released model, or a tiny sibling of one.
#[derive(Clone, Copy)]
pub struct Preset {
    name: &'static str,
    pub(crate) shape: &'static Shape,
}

impl Preset {
    /// Per-layer embeddings, borrowed keys and values, wider feed-forward in the layers that borrow.
    pub const E2B: Self = Self { name: "e2b", shape: &shape::E2B };
    /// Per-layer embeddings, borrowed keys and values.
    pub const E4B: Self = Self { name: "e4b", shape: &shape::E4B };
    /// Keys as values and one key-value head in global layers.
    pub const DENSE_12B: Self = Self { name: "12b", shape: &shape::DENSE_12B };
    /// Experts beside a dense branch; keys as values in global layers.
    pub const EXPERTS_26B: Self = Self { name: "26b-a4b", shape: &shape::EXPERTS_26B };
    /// Keys as values and fewer key-value heads in global layers.
    pub const DENSE_31B: Self = Self { name: "31b", shape: &shape::DENSE_31B };
    /// The structure of [`Preset::E2B`].
    pub const TINY_E2B: Self = Self { name: "tiny-e2b", shape: &shape::TINY_E2B };
    /// The structure of [`Preset::E4B`].
    pub const TINY_E4B: Self = Self { name: "tiny-e4b", shape: &shape::TINY_E4B };
    /// The structure of [`Preset::DENSE_12B`].
    pub const TINY_12B: Self = Self { name: "tiny-12b", shape: &shape::TINY_12B };
    /// The structure of [`Preset::EXPERTS_26B`].
    pub const TINY_26B: Self = Self { name: "tiny-26b-a4b", shape: &shape::TINY_26B };
    /// The structure of [`Preset::DENSE_31B`].
    pub const TINY_31B: Self = Self { name: "tiny-31b", shape: &shape::TINY_31B };

    /// Every preset.
    pub const ALL: [Self; 10] = [
        Self::E2B,
        Self::E4B,
        Self::DENSE_12B,
        Self::EXPERTS_26B,
        Self::DENSE_31B,
        Self::TINY_E2B,
        Self::TINY_E4B,
        Self::TINY_12B,
        Self::TINY_26B,
        Self::TINY_31B,
    ];

    /// The name, such as `26b-a4b`.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Whether this is one of the small ones.
    pub fn is_tiny(self) -> bool {
        self.name.starts_with("tiny-")
    }

    /// How many tokens the vocabulary has unless the options say otherwise.
    pub fn default_vocabulary(self) -> u32 {
        if self.is_tiny() { TINY_VOCABULARY } else { REAL_VOCABULARY }
    }
}

impl PartialEq for Preset {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Preset {}

impl fmt::Debug for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Preset({})", self.name)
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

impl FromStr for Preset {
    type Err = SynthError;

    /// Reads a name, in capitals or not.
    fn from_str(name: &str) -> Result<Self, SynthError> {
        let found = Self::ALL.into_iter().find(|preset| preset.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| SynthError::UnknownPreset {
            name: name.to_owned(),
            expected: listed(Self::ALL.map(Self::name)),
        })
    }
}
