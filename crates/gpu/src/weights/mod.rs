//! Weights: from the file to the GPU.

mod manifest;
pub mod pack;
mod pages;
mod read_ranges;
mod residency;
mod resident;
mod row_tables;
mod set;
mod stacks;

pub use manifest::Conversion;
pub(crate) use manifest::{Manifest, ManifestOptions, Numbers, Packed, Shard};
pub use residency::{Residency, UnknownResidency};
pub(crate) use resident::{Resident, STAGING};
pub(crate) use row_tables::RowTables;
pub use set::GpuWeights;
pub(crate) use set::ResidentTensor;
