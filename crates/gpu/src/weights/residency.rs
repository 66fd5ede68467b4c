//! Where weights live while a model runs.

use std::{fmt, str::FromStr};

/// Where weights live, from the fastest way to the most frugal one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Residency {
    /// All of them on the GPU.
    #[default]
    Gpu,
    /// Embedding tables stay in the file, and a step's tokens bring their rows with them. Saves gigabytes where a model
    /// has a table for every layer; tokens have to be seen by the host before they are read.
    Rows,
    /// That, and of a layer's experts only those used lately are on the GPU. Every step stops in each layer to hear which
    /// experts it needs.
    Paged,
}

impl Residency {
    /// All of them, in order.
    pub const ALL: [Self; 3] = [Self::Gpu, Self::Rows, Self::Paged];

    /// Its name in options.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gpu => "gpu",
            Self::Rows => "rows",
            Self::Paged => "paged",
        }
    }
}

impl fmt::Display for Residency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that no residency has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("residency `{0}` does not exist (expected gpu, rows or paged)")]
pub struct UnknownResidency(String);

impl FromStr for Residency {
    type Err = UnknownResidency;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|residency| residency.as_str() == name);
        found.ok_or_else(|| UnknownResidency(name.to_owned()))
    }
}
