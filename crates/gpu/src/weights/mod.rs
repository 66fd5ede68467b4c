//! Weights: from the file to the GPU.

pub mod pack;
mod resident;

pub(crate) use resident::{Resident, Shard};
