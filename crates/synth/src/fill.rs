//! What the values of a tensor are.

use crate::random::Stream;

/// How values come about.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fill {
    /// Nearly normal around zero.
    Normal {
        /// The standard deviation.
        deviation: f32,
    },
    /// Evenly between two bounds.
    Between(f32, f32),
    /// These.
    Values(Vec<f32>),
}

impl Fill {
    /// Evenly around a mean that is not zero: what the weights of norms are.
    pub(crate) fn around(mean: f32) -> Self {
        Self::Between(0.7 * mean, 1.3 * mean)
    }

    /// The values from position `first` on.
    pub(crate) fn write(&self, stream: Stream, first: u64, out: &mut [f32]) {
        let positions = first..;
        match self {
            Self::Normal { deviation } => {
                for (out, position) in out.iter_mut().zip(positions) {
                    *out = stream.normal(position) * deviation;
                }
            }
            Self::Between(low, high) => {
                for (out, position) in out.iter_mut().zip(positions) {
                    *out = low + stream.even(position) * (high - low);
                }
            }
            Self::Values(values) => {
                for (out, position) in out.iter_mut().zip(positions) {
                    *out = values[position as usize];
                }
            }
        }
    }
}
