//! A clip as an encoder reads it: rows of numbers, one for each stretch of time.

use crate::Clip;

/// Samples of a frame that a model without an audio tower reads: 40 milliseconds.
pub const WAVE_FRAME: usize = 640;

/// Rows of numbers, one for each stretch of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Frames {
    width: u32,
    values: Vec<f32>,
}

impl Frames {
    pub(crate) fn new(width: u32, values: Vec<f32>) -> Self {
        Self { width, values }
    }

    /// The waveform itself in frames of [`WAVE_FRAME`] samples, as 12B reads it. The last frame ends with zeros. Each frame
    /// becomes a soft token.
    pub fn of_wave(clip: Clip<'_>) -> Self {
        let mut values = clip.as_slice().to_vec();
        values.resize(values.len().next_multiple_of(WAVE_FRAME), 0.0);
        Self::new(WAVE_FRAME as u32, values)
    }

    /// Numbers in a row.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// How many rows there are.
    pub fn rows(&self) -> u32 {
        (self.values.len() / self.width as usize) as u32
    }

    /// The numbers of all rows.
    pub fn values(&self) -> &[f32] {
        &self.values
    }
}
