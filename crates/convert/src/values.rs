//! The values of a tensor on their way into the file: read in pieces, put in the file's order, encoded.

use rullama_gguf::{Format, PIECE_VALUES};

use crate::{
    ConvertError,
    table::Transform,
    weights::{Stored, Weights},
};

/// Colours of a pixel.
const CHANNELS: usize = 3;

/// Above this, `ln(1 + eˣ)` is taken for x, as PyTorch does.
const SOFTPLUS_LINEAR: f32 = 20.0;

/// Where a tensor's values come from.
#[derive(Debug)]
pub(crate) enum Values {
    /// A tensor of the checkpoint, and what is done to it.
    Stored(Stored, Transform),
    /// No tensor of a checkpoint.
    Given(Vec<f32>),
}

impl Values {
    /// The extents that the tensor has in the file, fastest varying first.
    pub(crate) fn dims(&self) -> Vec<u64> {
        let (stored, transform) = match self {
            Self::Stored(stored, transform) => (stored, *transform),
            Self::Given(values) => return vec![values.len() as u64],
        };
        let reversed: Vec<u64> = stored.shape.iter().rev().copied().collect();
        match (transform, &reversed[..]) {
            (_, []) => vec![1],
            (Transform::Depthwise, &[kernel, _, channels]) => vec![kernel, channels],
            (Transform::PatchKernel, &[patch, width]) => {
                let side = (patch / CHANNELS as u64).isqrt();
                vec![side, side, CHANNELS as u64, width]
            }
            (Transform::SwapAxes, &[width, axes, positions]) => vec![width, positions, axes],
            _ => reversed,
        }
    }

    /// How many values must not be torn apart.
    fn unit(&self) -> u64 {
        match self {
            Self::Stored(stored, _) => stored.shape.last().copied().unwrap_or(1),
            Self::Given(values) => values.len() as u64,
        }
        .max(1)
    }

    /// How many values are worth reading at a time: whole units.
    pub(crate) fn piece(&self) -> u64 {
        let unit = self.unit();
        (PIECE_VALUES / unit).max(1) * unit
    }

    /// The bytes of `len` values from the one at `first` on, in the order of the file. Both are whole units.
    pub(crate) fn encode(
        &self,
        weights: &Weights,
        format: Format,
        first: u64,
        len: u64,
    ) -> Result<Vec<u8>, ConvertError> {
        let len = len as usize;
        let mut values = vec![0.0; len];
        match self {
            Self::Given(given) => values.copy_from_slice(&given[first as usize..][..len]),
            Self::Stored(stored, transform) => {
                read(weights, stored, *transform, first, &mut values, self.unit() as usize)?;
            }
        }
        let mut bytes = vec![0; len / format.block_len() * format.block_bytes()];
        format.encode(&values, &mut bytes)?;
        Ok(bytes)
    }
}

fn read(
    weights: &Weights,
    stored: &Stored,
    transform: Transform,
    first: u64,
    values: &mut [f32],
    unit: usize,
) -> Result<(), ConvertError> {
    match transform {
        Transform::SwapAxes => {
            let (axes, positions) = (stored.shape[1], stored.shape[0]);
            for (row, values) in (first / unit as u64..).zip(values.chunks_exact_mut(unit)) {
                let (axis, position) = (row / positions, row % positions);
                weights.read(stored, (position * axes + axis) * unit as u64, values)?;
            }
            return Ok(());
        }
        _ => weights.read(stored, first, values)?,
    }
    match transform {
        Transform::Softplus => values.iter_mut().for_each(|value| *value = softplus(*value)),
        Transform::PatchKernel | Transform::PatchRows => {
            let mut row = vec![0.0; unit];
            for values in values.chunks_exact_mut(unit) {
                row.copy_from_slice(values);
                planes(&row, values);
            }
        }
        Transform::Copy | Transform::Depthwise | Transform::SwapAxes => {}
    }
    Ok(())
}

/// From pixels with their colours side by side to one plane for each colour.
fn planes(pixels: &[f32], planes: &mut [f32]) {
    let count = pixels.len() / CHANNELS;
    for (i, pixel) in pixels.chunks_exact(CHANNELS).enumerate() {
        for (channel, &value) in pixel.iter().enumerate() {
            planes[channel * count + i] = value;
        }
    }
}

fn softplus(x: f32) -> f32 {
    // In double precision, so that only the result is rounded.
    if x > SOFTPLUS_LINEAR { x } else { f64::from(x).exp().ln_1p() as f32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_become_planes() {
        let mut out = [0.0; 6];
        planes(&[1.0, 2.0, 3.0, 10.0, 20.0, 30.0], &mut out);
        assert_eq!(out, [1.0, 10.0, 2.0, 20.0, 3.0, 30.0]);
    }

    #[test]
    fn softplus_bends_at_zero() {
        assert!((softplus(0.0) - std::f32::consts::LN_2).abs() < 1e-7);
        assert!(softplus(-100.0) >= 0.0);
        assert_eq!(softplus(30.0), 30.0);
    }
}
