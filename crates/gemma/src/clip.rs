//! Linear layers whose inputs and outputs are bounded, as those of the smaller members' towers are.
//!
//! Bounds are tensors of one value. They are read before the graph is described, so that they are numbers there: a bound that
//! is no bound costs nothing, and layers with the same input and the same bounds share the clamped input.

use std::collections::BTreeMap;

use futures_util::future::try_join_all;
use rullama_gguf::{Model, ModelTensor, Shape};
use rullama_graph::{Tensor, Weight};

use crate::{
    GemmaError, TowerError,
    loader::LayerLoader,
    names::{self, BOUNDS, PACKED_BOUNDS},
};

/// The bounds of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bounds {
    /// The least it may be.
    low: f32,
    /// The most it may be.
    high: f32,
}

/// The bounds of what goes into a linear layer, and of what comes out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Clip {
    /// Of the input.
    input: Bounds,
    /// Of the output.
    output: Bounds,
}

/// The bounds of a tower's linear layers, by the names of these.
pub(crate) type Clips = BTreeMap<String, Clip>;

impl Bounds {
    const NONE: Self = Self { low: f32::NEG_INFINITY, high: f32::INFINITY };

    fn new(low: f32, high: f32) -> Self {
        // Some files have the largest number where there is no bound.
        let low = if low <= f32::MIN { f32::NEG_INFINITY } else { low };
        let high = if high >= f32::MAX { f32::INFINITY } else { high };
        Self { low, high }
    }

    fn apply<'g>(self, x: Tensor<'g>) -> Tensor<'g> {
        if self == Self::NONE { x } else { x.clamp(self.low, self.high) }
    }
}

impl Clip {
    const NONE: Self = Self { input: Bounds::NONE, output: Bounds::NONE };

    fn new([input_low, input_high, output_low, output_high]: [f32; 4]) -> Self {
        let (input, output) = (Bounds::new(input_low, input_high), Bounds::new(output_low, output_high));
        Self { input, output }
    }
}

/// Reads the bounds of a tower's linear layers, of which every block has the same.
pub(crate) async fn read(
    model: &Model,
    blocks: &'static str,
    count: u32,
    linears: &[&str],
) -> Result<Clips, TowerError> {
    let packed = match model.tensor(PACKED_BOUNDS).filter(|_| blocks == names::VISION_BLOCKS) {
        // The last four are those of the projection, which is never clamped.
        Some(tensor) => values(model, tensor, 4 * (u64::from(count) * linears.len() as u64 + 1)).await?,
        None => Vec::new(),
    };
    let all = (0..count).flat_map(|block| linears.iter().map(move |linear| (block, *linear)));
    let found = all.enumerate().map(|(index, (block, linear))| {
        let (name, packed) = (names::of_block(blocks, block, linear), &packed);
        async move {
            let clip = one(model, &name, packed.get(4 * index..4 * index + 4)).await?;
            Ok::<_, TowerError>((name, clip))
        }
    });
    let found = try_join_all(found).await?;
    Ok(found.into_iter().filter(|(_, clip)| *clip != Clip::NONE).collect())
}

/// The bounds of one layer: those beside its weight, or else those of early files.
async fn one(model: &Model, linear: &str, packed: Option<&[f32]>) -> Result<Clip, TowerError> {
    let beside = BOUNDS.map(|bound| model.tensor(&format!("{linear}.{bound}")));
    if beside.iter().all(Option::is_none) {
        // What early files have no bounds for, they have zeros for.
        return Ok(match packed {
            Some(&[a, b, c, d]) if a < b && c < d => Clip::new([a, b, c, d]),
            _ => Clip::NONE,
        });
    }
    let mut bounds = [f32::NEG_INFINITY, f32::INFINITY, f32::NEG_INFINITY, f32::INFINITY];
    let read = beside.into_iter().map(async |tensor: Option<ModelTensor<'_>>| match tensor {
        Some(tensor) => values(model, tensor, 1).await.map(|values| values.first().copied()),
        None => Ok(None),
    });
    for (bound, found) in bounds.iter_mut().zip(try_join_all(read).await?) {
        *bound = found.unwrap_or(*bound);
    }
    for pair in bounds.chunks(2) {
        if let &[low, high] = pair
            && (low.is_nan() || high.is_nan() || low > high)
        {
            return Err(GemmaError::Bounds { linear: linear.to_owned(), low, high }.into());
        }
    }
    Ok(Clip::new(bounds))
}

/// All values of a tensor, which are `count`.
async fn values(model: &Model, tensor: ModelTensor<'_>, count: u64) -> Result<Vec<f32>, TowerError> {
    if tensor.shape.values() != count {
        let expected = Shape::new(&[count]).unwrap_or(tensor.shape);
        let (name, found) = (tensor.name.to_owned(), tensor.shape);
        return Err(GemmaError::WrongShape { name, found, expected }.into());
    }
    let bytes = model.read(tensor.range()).await?;
    decoded(&tensor, &bytes)
}

/// What some rows of a tensor say.
pub(crate) fn decoded(tensor: &ModelTensor<'_>, bytes: &[u8]) -> Result<Vec<f32>, TowerError> {
    let format = tensor.format;
    let mut values = vec![0.0; bytes.len() / format.block_bytes() * format.block_len()];
    let result = format.decode(bytes, &mut values);
    result.map_err(|source| TowerError::Format { tensor: tensor.name.to_owned(), source })?;
    Ok(values)
}

/// A linear layer with its bounds.
pub(crate) struct ClippedLinear {
    weight: Weight,
    clip: Clip,
}

impl ClippedLinear {
    pub(crate) fn load(
        tensors: &LayerLoader<'_>,
        clips: &Clips,
        linear: &str,
        width: u32,
        rows: u32,
    ) -> Result<Self, GemmaError> {
        let name = tensors.full_name(linear);
        let weight = tensors.loader.matrix(&format!("{name}.weight"), width, rows)?;
        Ok(Self { weight, clip: clips.get(&name).copied().unwrap_or(Clip::NONE) })
    }

    pub(crate) fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        self.clip.output.apply(self.clip.input.apply(x).linear(self.weight))
    }

    /// Several layers with the same input, which is clamped once for all with the same bounds.
    pub(crate) fn forward_all<'g, const COUNT: usize>(
        layers: [&Self; COUNT],
        x: Tensor<'g>,
    ) -> [Tensor<'g>; COUNT] {
        let mut clamped: Vec<(Bounds, Tensor<'g>)> = Vec::new();
        layers.map(|layer| {
            let bounds = layer.clip.input;
            let known = clamped.iter().find(|(other, _)| *other == bounds).map(|(_, x)| *x);
            let x = known.unwrap_or_else(|| {
                let x = bounds.apply(x);
                clamped.push((bounds, x));
                x
            });
            layer.clip.output.apply(x.linear(layer.weight))
        })
    }
}
