//! From pictures to soft rows: a vision tower, or in the model without one a projection of large patches.
//!
//! | file | idea |
//! |---|---|
//! | `config` | the numbers, read once |
//! | `tower` | patches, blocks, pooling |
//! | `block` | one block of the tower |
//! | `direct` | the model without a tower |
//! | `inputs` | from patches to the inputs of the graph |
//!
//! Every row says by its inputs where it is, and no operation depends on the order of rows but pooling. So the patches of a
//! picture come cell by cell, and pooling is the mean of neighbouring rows.

mod block;
mod config;
mod direct;
mod inputs;
mod tower;

use rullama_gguf::Model;
use rullama_graph::{Builder, Graph};

pub use config::{Gelu, VisionConfig, VisionTower};
pub use inputs::{Patches, VisionInputs};

use crate::{GemmaError, Medium, loader::Loader};

/// Checks the tensors that make soft rows of a picture, and describes how: the graph's output is a soft row for each cell,
/// row by row of the picture, and its inputs are those of [`VisionConfig::inputs`].
pub fn vision(model: &Model, config: &VisionConfig) -> Result<Graph, GemmaError> {
    let builder = Builder::new();
    let tensors = Loader { model, builder: &builder };
    let soft = match &config.tower {
        Some(tower) => tower::describe(config, tower, &tensors)?,
        None => direct::describe(config, &tensors)?,
    };
    let graph = builder.finish_with(&[("soft", soft.named("soft"))]);
    Medium::Vision.nothing_left(model, &graph)?;
    Ok(graph)
}
