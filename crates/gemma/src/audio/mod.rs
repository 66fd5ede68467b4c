//! From sound to soft rows: a conformer over mel bands, or in the model without a tower a projection of samples.
//!
//! | file | idea |
//! |---|---|
//! | `config` | the numbers, read once |
//! | `tower` | convolutions over time and bands, blocks, projection |
//! | `block` | one block of the tower |

mod block;
mod config;
mod tower;

use rullama_gguf::Model;
use rullama_graph::{Builder, Graph, Rows};

pub use config::{AudioConfig, AudioInputs, AudioTower};

use crate::{GemmaError, Medium, loader::Loader, names};

/// Checks the tensors that make soft rows of sound, and describes how: the graph's output is a soft row for each 40
/// milliseconds, and its inputs are those of [`AudioConfig::inputs`].
pub fn audio(model: &Model, config: &AudioConfig) -> Result<Graph, GemmaError> {
    let builder = Builder::new();
    let tensors = Loader { model, builder: &builder };
    let x = match &config.tower {
        Some(tower) => tower::describe(config, tower, &tensors)?,
        None => builder.input("frames", Rows::Of(builder.domain("frames")), config.frame_width()),
    };
    let projection = tensors.matrix(names::AUDIO_PROJECTION, x.width(), config.text_width)?;
    let soft = x.rms_norm_unweighted(x.width(), config.eps).linear(projection);
    let graph = builder.finish_with(&[("soft", soft.named("soft"))]);
    Medium::Audio.nothing_left(model, &graph)?;
    Ok(graph)
}
