//! Log-mel frames: how loud a clip is in each of 128 bands, every hundredth of a second.
//!
//! This is what the audio tower of E2B and E4B reads. Sums are f64, as in the library that Hugging Face calls, so that quiet
//! bands agree as well as loud ones.

use std::{f64::consts::PI, fmt, sync::Arc};

use realfft::{RealFftPlanner, RealToComplex};

use crate::{Clip, Frames, SAMPLE_RATE};

/// Bands of a frame.
pub const MEL_BANDS: usize = 128;

/// Samples of a frame: 20 milliseconds.
const FRAME: usize = 320;

/// Samples from one frame to the next.
const HOP: usize = 160;

/// Zeros before the first sample, so that the first frame looks back only.
const PADDING: usize = 160;

/// Samples that a frame needs. Hugging Face asks for one more than it uses, for a filter that Gemma switches off.
const NEEDED: usize = FRAME + 1;

/// Samples of the transform; a frame is filled up with zeros.
const TRANSFORM: usize = 512;

/// What is added before the logarithm, so that silence has one.
const FLOOR: f64 = 0.001;

/// How the floor keeps the logarithm of silence finite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MelFloor {
    /// It is added to every value, as Hugging Face does.
    #[default]
    Added,
    /// It replaces smaller values, as llama.cpp does. For comparisons with llama.cpp only.
    Least,
}

/// Computes log-mel frames. Keep it for further clips: it holds the tables.
#[derive(Clone)]
pub struct LogMel {
    transform: Arc<dyn RealToComplex<f64>>,
    window: Vec<f64>,
    bands: Vec<Band>,
    floor: MelFloor,
}

/// The weights of a band: those of consecutive frequencies of the transform.
#[derive(Debug, Clone)]
struct Band {
    first: usize,
    weights: Vec<f64>,
}

impl LogMel {
    /// The frames that Gemma's audio towers read.
    pub fn new() -> Self {
        Self::with_floor(MelFloor::Added)
    }

    /// The same with another treatment of silence.
    pub fn with_floor(floor: MelFloor) -> Self {
        let window = (0..FRAME).map(|at| 0.5 - 0.5 * (2.0 * PI * at as f64 / FRAME as f64).cos());
        Self {
            transform: RealFftPlanner::new().plan_fft_forward(TRANSFORM),
            window: window.collect(),
            bands: bands(),
            floor,
        }
    }

    /// How many frames this many samples give. Fewer than 161 give none.
    pub fn frame_count(samples: usize) -> usize {
        (samples + PADDING).checked_sub(NEEDED).map_or(0, |spare| spare / HOP + 1)
    }

    /// How many soft tokens the audio tower makes of this many frames: one of four.
    pub fn soft_tokens(frames: usize) -> usize {
        frames.div_ceil(2).div_ceil(2)
    }

    /// The frames of a clip, [`MEL_BANDS`] numbers each.
    pub fn frames(&self, clip: Clip<'_>) -> Frames {
        let samples = clip.as_slice();
        let mut values = Vec::with_capacity(Self::frame_count(samples.len()) * MEL_BANDS);
        let mut input = self.transform.make_input_vec();
        let mut output = self.transform.make_output_vec();
        let mut scratch = self.transform.make_scratch_vec();
        for frame in 0..Self::frame_count(samples.len()) {
            // The frame begins this many samples after the padding does.
            let start = frame * HOP;
            input.fill(0.0);
            for (at, (value, weight)) in input.iter_mut().zip(&self.window).enumerate() {
                let sample = (start + at).checked_sub(PADDING).map_or(0.0, |index| samples[index]);
                *value = f64::from(sample) * weight;
            }
            self.transform
                .process_with_scratch(&mut input, &mut output, &mut scratch)
                .expect("all buffers have the transform's own lengths");
            let magnitudes: Vec<f64> = output.iter().map(|value| value.norm_sqr().sqrt()).collect();
            values.extend(self.bands.iter().map(|band| self.compress(band.sum(&magnitudes))));
        }
        Frames::new(MEL_BANDS as u32, values)
    }

    fn compress(&self, value: f64) -> f32 {
        let value = match self.floor {
            MelFloor::Added => value + FLOOR,
            MelFloor::Least => value.max(FLOOR),
        };
        value.ln() as f32
    }
}

impl Default for LogMel {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LogMel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogMel").field("floor", &self.floor).finish_non_exhaustive()
    }
}

impl Band {
    fn sum(&self, magnitudes: &[f64]) -> f64 {
        self.weights.iter().zip(&magnitudes[self.first..]).map(|(weight, magnitude)| weight * magnitude).sum()
    }
}

/// Triangles whose corners are equally spaced on the HTK mel scale from 0 to 8000 Hz.
fn bands() -> Vec<Band> {
    let highest = f64::from(SAMPLE_RATE) / 2.0;
    let top = 2595.0 * (1.0 + highest / 700.0).log10();
    let corner =
        |index: usize| 700.0 * (10_f64.powf(top * index as f64 / (MEL_BANDS + 1) as f64 / 2595.0) - 1.0);
    let frequency = |bin: usize| bin as f64 * f64::from(SAMPLE_RATE) / TRANSFORM as f64;
    let band = |index: usize| {
        let [low, middle, high] = [0, 1, 2].map(|offset| corner(index + offset));
        let weight = |bin: usize| {
            let frequency = frequency(bin);
            ((frequency - low) / (middle - low)).min((high - frequency) / (high - middle))
        };
        let inside = |&bin: &usize| weight(bin) > 0.0;
        let bins = 0..=TRANSFORM / 2;
        let first = bins.clone().find(inside).unwrap_or(0);
        Band { first, weights: bins.skip(first).take_while(inside).map(weight).collect() }
    };
    (0..MEL_BANDS).map(band).collect()
}
