//! Where weights live while a model runs.

use std::{fmt, str::FromStr};

/// Where weights live, from the fastest to the most frugal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Residency {
    /// All of them on the GPU.
    #[default]
    Gpu,
    /// Embedding tables stay in the file, and the rows of a step's tokens are uploaded before the step. Saves gigabytes if a
    /// model has a table for every layer. The host must see each token before the GPU reads it.
    Rows,
    /// As `Rows`, and only the recently used experts of each layer are on the GPU. Every step pauses in each layer, so that the
    /// host can upload the experts that it needs.
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

/// An unknown name of a residency.
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
