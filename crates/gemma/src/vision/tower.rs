//! The tower: patches with their places, blocks, pooling, projection.

use rullama_graph::{Rows, Tensor};

use super::{VisionConfig, VisionTower, block::Block, config::CHANNELS};
use crate::{GemmaError, loader::Loader, names};

pub(super) fn describe<'g>(
    config: &VisionConfig,
    tower: &VisionTower,
    tensors: &Loader<'g>,
) -> Result<Tensor<'g>, GemmaError> {
    let &VisionConfig { width, eps, .. } = config;
    let (side, cell) = (config.patch_side(), config.cell_side());
    let builder = tensors.builder;
    // In files a kernel of a convolution, whose strides are as long as it is: a matrix.
    let kernel = [side, side, CHANNELS, width];
    let patches = tensors.flat_matrix(names::PATCHES, &kernel, config.patch_width(), width)?;
    let mut blocks = Vec::new();
    for index in 0..tower.blocks {
        blocks.push(Block::load(config, tower, &tensors.block(names::VISION_BLOCKS, index))?);
    }
    let standard = match tensors.has(names::STANDARD_BIAS) || tensors.has(names::STANDARD_SCALE) {
        true => Some((
            tensors.vector(names::STANDARD_BIAS, width)?,
            tensors.vector(names::STANDARD_SCALE, width)?,
        )),
        false => None,
    };
    let projection = tensors.matrix(names::VISION_PROJECTION, width, config.text_width)?;

    let rows = Rows::Of(builder.domain("patches"));
    let pixels = builder.input("patches", rows, config.patch_width());
    let places = builder.input("places", rows, width);
    let turns = builder.input("turns", rows, tower.head_width(width));
    let mut x = (pixels.linear(patches) + places).named("embedded");
    for (index, block) in blocks.iter().enumerate() {
        x = builder.scope(format_args!("block{index}"), || block.forward(x, turns));
    }
    let cells = x.mean_rows(cell * cell, "cells").scale((width as f32).sqrt());
    let cells = match standard {
        // Less the bias: there is no operation for that, and signs are exact.
        Some((bias, scale)) => cells.scale(-1.0).bias(bias).scale(-1.0).scale_by(scale),
        None => cells,
    };
    Ok(cells.named("pooled").rms_norm_unweighted(width, eps).linear(projection))
}
