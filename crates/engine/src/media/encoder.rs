//! What the engine asks of a backend for images and sound.

use crate::Pending;

/// How far the encoding of an image or a sound is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EncodeProgress {
    /// The weights of the tower are being read: a part from 0 to 1.
    Loading(f64),
    /// The rows are being computed: a part from 0 to 1.
    Computing(f64),
}

impl EncodeProgress {
    /// The part of the whole that is done, from 0 to 1. Reading the weights counts as half of it.
    pub fn fraction(self) -> f64 {
        match self {
            Self::Loading(part) => 0.5 * part,
            Self::Computing(part) => 0.5 + 0.5 * part,
        }
    }

    /// The same for the clip at `index` of a sound that is encoded in `count` clips.
    pub(crate) fn of_clip(self, index: usize, count: usize) -> Self {
        match self {
            Self::Computing(part) => Self::Computing((index as f64 + part) / count as f64),
            // Only the first clip waits for weights.
            Self::Loading(_) if index > 0 => Self::Computing(index as f64 / count as f64),
            loading @ Self::Loading(_) => loading,
        }
    }
}

/// A tower on a backend.
pub trait Encoder {
    /// Computes the tower's rows from its inputs, given by name. Reads the tower's weights first, if they are not there.
    fn run<'a>(
        &'a self,
        inputs: &'a [(&'a str, &'a [f32])],
        progress: &'a mut dyn FnMut(EncodeProgress),
    ) -> Pending<'a, Vec<f32>>;

    /// Frees the tower's weights. The next run reads them again.
    fn release(&self);
}

/// `done` of `all`, as a part from 0 to 1.
#[cfg(any(feature = "cpu", feature = "gpu"))]
pub(crate) fn part(done: f64, all: f64) -> f64 {
    if all > 0.0 { (done / all).min(1.0) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_never_goes_back() {
        let clip =
            [EncodeProgress::Loading(0.0), EncodeProgress::Loading(1.0), EncodeProgress::Computing(0.5)];
        let all = (0..3).flat_map(|index| clip.map(|progress| progress.of_clip(index, 3).fraction()));
        let all: Vec<f64> = all.collect();
        assert!(all.is_sorted(), "{all:?}");
        assert_eq!((all[0], EncodeProgress::Computing(1.0).of_clip(2, 3).fraction()), (0.0, 1.0));
    }
}
