//! Which format each tensor of a file gets, decided in one place for all that write files.

use std::{fmt, str::FromStr};

use crate::Format;

/// The formats of a file's weights, under the names that GGUF files carry.
///
/// A single format's name stands for that format wherever a matrix can have it. `Q4_K_M` is the mix that
/// llama.cpp's quantiser makes. In all of them norms, scales and routers are single precision, and the
/// projection of the per-layer embeddings and the towers stay in floating point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[expect(non_camel_case_types, reason = "the spelling that every GGUF tool and model name uses")]
#[non_exhaustive]
pub enum Mix {
    /// Single precision throughout.
    F32,
    /// Half precision.
    F16,
    /// The upper half of single precision.
    BF16,
    /// Signed bytes in blocks of 32.
    Q8_0,
    /// Four bits in blocks of 32, the embedding tables too.
    Q4_0,
    /// Four bits in blocks of 256, the embedding tables too.
    Q4_K,
    /// Mostly `Q4_K`, with `Q6_K` for the embedding tables and half of the value and down projections.
    #[default]
    Q4_K_M,
    /// Six bits in blocks of 256.
    Q6_K,
}

/// What a tensor is for, as far as its format depends on that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Anything that is never quantised: norms, scales, the router, position tables.
    Exact,
    /// A matrix of the decoder.
    Matrix,
    /// A matrix that gets more bits than others in a mix.
    Favoured,
    /// A table with a row for each token.
    Table,
    /// The projection of the per-layer embeddings, which no quantiser touches.
    PerLayerProjection,
    /// A matrix of the vision tower, or one that projects soft tokens to the decoder.
    Vision,
    /// A matrix of the audio tower.
    Audio,
}

impl Mix {
    /// Every mix.
    pub const ALL: [Self; 8] =
        [Self::F32, Self::F16, Self::BF16, Self::Q8_0, Self::Q4_0, Self::Q4_K, Self::Q4_K_M, Self::Q6_K];

    /// The name in lower case, such as `q4_k_m`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::Q8_0 => "q8_0",
            Self::Q4_0 => "q4_0",
            Self::Q4_K => "q4_k",
            Self::Q4_K_M => "q4_k_m",
            Self::Q6_K => "q6_k",
        }
    }

    /// The number for this mix in `general.file_type`.
    pub const fn file_type(self) -> u32 {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::Q4_0 => 2,
            Self::Q8_0 => 7,
            // There is no number for nothing but Q4_K; the small mix comes closest.
            Self::Q4_K => 14,
            Self::Q4_K_M => 15,
            Self::Q6_K => 18,
            Self::BF16 => 32,
        }
    }

    /// The format of most matrices.
    const fn usual(self) -> Format {
        match self {
            Self::F32 => Format::F32,
            Self::F16 => Format::F16,
            Self::BF16 => Format::BF16,
            Self::Q8_0 => Format::Q8_0,
            Self::Q4_0 => Format::Q4_0,
            Self::Q4_K | Self::Q4_K_M => Format::Q4_K,
            Self::Q6_K => Format::Q6_K,
        }
    }

    /// The format of a tensor with rows of this length.
    pub fn format(self, role: Role, row: u64) -> Format {
        let wanted = match (self, role) {
            (_, Role::Exact) | (Self::F32, _) => Format::F32,
            (Self::F16, Role::Vision | Role::Audio) => Format::F16,
            (Self::BF16, Role::Vision | Role::Audio) => Format::BF16,
            // The towers as Ollama publishes them, whatever the mix of the decoder.
            (_, Role::Vision) => Format::F16,
            (_, Role::Audio) => Format::BF16,
            (Self::F16, Role::PerLayerProjection) => Format::F16,
            (_, Role::PerLayerProjection) => Format::BF16,
            (Self::Q4_K_M, Role::Favoured | Role::Table) => Format::Q6_K,
            (_, Role::Matrix | Role::Favoured | Role::Table) => self.usual(),
        };
        wanted.fitting(row)
    }
}

/// Whether a mix favours the matrix with this index among all of its kind: the first and the last eighth,
/// and every third between them. This is llama.cpp's rule.
pub fn is_favoured(index: u32, count: u32) -> bool {
    let eighth = count / 8;
    index < eighth || index >= 7 * count / 8 || (index - eighth) % 3 == 2
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Mix {
    type Err = UnknownMix;

    /// Reads a name, in capitals or not.
    fn from_str(name: &str) -> Result<Self, UnknownMix> {
        let found = Self::ALL.into_iter().find(|mix| mix.name().eq_ignore_ascii_case(name));
        found.ok_or_else(|| UnknownMix {
            name: name.to_owned(),
            expected: Self::ALL.map(Self::name).join(", "),
        })
    }
}

/// A name that no mix of formats has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("format `{name}` can't be written (expected one of {expected})")]
pub struct UnknownMix {
    /// The name asked for.
    pub name: String,
    /// The names there are.
    pub expected: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_any_case() {
        for mix in Mix::ALL {
            assert_eq!(mix.name().parse::<Mix>().unwrap(), mix);
            assert_eq!(mix.name().to_uppercase().parse::<Mix>().unwrap(), mix);
        }
        let error = "q3_k".parse::<Mix>().unwrap_err();
        assert!(error.to_string().contains("q4_k_m"), "{error}");
    }

    #[test]
    fn rows_that_are_no_whole_blocks_fall_back() {
        assert_eq!(Mix::Q4_K_M.format(Role::Matrix, 704), Format::Q5_0);
        assert_eq!(Mix::Q4_K_M.format(Role::Favoured, 704), Format::Q8_0);
        assert_eq!(Mix::Q4_K_M.format(Role::Favoured, 768), Format::Q6_K);
        assert_eq!(Mix::Q6_K.format(Role::Table, 2112), Format::Q8_0);
        assert_eq!(Mix::Q4_0.format(Role::Matrix, 704), Format::Q4_0);
        assert_eq!(Mix::Q4_K.format(Role::Table, 256), Format::Q4_K);
        for mix in [Mix::Q4_K_M, Mix::Q6_K, Mix::Q8_0, Mix::Q4_0] {
            assert_eq!(mix.format(Role::Matrix, 72), Format::F16, "{mix}");
        }
    }
}
