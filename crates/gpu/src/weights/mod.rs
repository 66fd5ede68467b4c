//! Weights: from the file to the GPU.

mod manifest;
pub mod pack;
mod resident;

pub use manifest::Conversion;
pub(crate) use manifest::{Manifest, Packed, Shard};
pub(crate) use resident::{Resident, STAGING};
