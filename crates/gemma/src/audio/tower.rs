//! The tower: convolutions over time and bands, blocks, and a projection of its own.

use rullama_graph::{Activation, Convolution, Rows, Tensor};

use super::{AudioConfig, AudioTower, block::Block};
use crate::{GemmaError, loader::Loader, names};

/// Names of what the convolutions leave, for messages and printed graphs.
const HALVED: [&str; 2] = ["halves", "quarters"];

pub(super) fn describe<'g>(
    config: &AudioConfig,
    tower: &AudioTower,
    tensors: &Loader<'g>,
) -> Result<Tensor<'g>, GemmaError> {
    let &AudioConfig { width, eps, .. } = config;
    let (builder, bands) = (tensors.builder, AudioConfig::BANDS);
    let [first, second] = tower.channels;
    let shapes = [
        Convolution { bands, channels: 1, outputs: first },
        Convolution { bands: bands.div_ceil(2), channels: first, outputs: second },
    ];
    let mut convolutions = Vec::new();
    for ((shape, name), norm) in shapes.into_iter().zip(names::CONVOLUTIONS).zip(names::CONVOLUTION_NORMS) {
        let kernel = tensors.flat(name, &[3, 3, shape.channels, shape.outputs])?;
        convolutions.push((shape, kernel, tensors.vector(norm, shape.outputs)?));
    }
    let input = tensors.matrix(tower.names.input, shapes[1].output_width(), width)?;
    let mut blocks = Vec::new();
    for index in 0..tower.blocks {
        blocks.push(Block::load(config, tower, &tensors.block(names::AUDIO_BLOCKS, index))?);
    }
    let output = tensors.matrix(tower.names.output, width, tower.output)?;
    let output_bias = tensors.vector(tower.names.output_bias, tower.output)?;

    let mut x = builder.input("frames", Rows::Of(builder.domain("frames")), bands);
    for ((shape, kernel, norm), name) in convolutions.into_iter().zip(HALVED) {
        x = x.convolve(kernel, shape, name).layer_norm(norm, eps).activate(Activation::Relu);
    }
    let mut x = x.linear(input).named("embedded");
    let distances = builder.input("distances", Rows::Of(builder.domain("distances")), width);
    for (index, block) in blocks.iter().enumerate() {
        x = builder.scope(format_args!("block{index}"), || block.forward(x, distances));
    }
    Ok(x.linear(output).bias(output_bias).named("tower_out"))
}
