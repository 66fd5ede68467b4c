//! Sound of any sample rate at 16 kHz, by rubato.

use rubato::{
    Fft, FixedSync, Resampler as _, WindowFunction, audioadapter_buffers::direct::InterleavedSlice,
};

use crate::{MAX_SECONDS, MediaError, SAMPLE_RATE};

/// The sample rates that are read.
pub(super) const LEAST_RATE: u32 = 1_000;
pub(super) const MOST_RATE: u32 = 768_000;

/// The least samples of a block: longer blocks have a sharper filter, and 0.1 s of sound is sharp enough.
const BLOCK: usize = 4096;

/// The most samples that come out.
const MOST_SAMPLES: usize = MAX_SECONDS as usize * SAMPLE_RATE as usize;

/// Takes a sound piece by piece, so that it never lies in memory at its own rate.
pub(super) struct Resampler {
    /// None where the sound has the right rate.
    fft: Option<Fft<f32>>,
    rate: u32,
    /// Samples that do not fill a block yet.
    waiting: Vec<f32>,
    block: Vec<f32>,
    /// How much of the filter's delay is still to be dropped.
    delay: usize,
    taken: u64,
    samples: Vec<f32>,
}

impl Resampler {
    pub(super) fn new(rate: u32) -> Result<Self, MediaError> {
        if !(LEAST_RATE..=MOST_RATE).contains(&rate) {
            return Err(MediaError::SampleRate { found: rate, least: LEAST_RATE, most: MOST_RATE });
        }
        let new = || {
            let [from, to] = [rate, SAMPLE_RATE].map(|rate| rate as usize);
            Fft::new_custom(from, to, BLOCK, 1, 1, WindowFunction::BlackmanHarris2, FixedSync::Both)
        };
        let fft = (rate != SAMPLE_RATE).then(new).transpose().map_err(broken)?;
        let delay = fft.as_ref().map_or(0, |fft| fft.output_delay());
        let block = vec![0.0; fft.as_ref().map_or(0, |fft| fft.output_frames_max())];
        Ok(Self { fft, rate, waiting: Vec::new(), block, delay, taken: 0, samples: Vec::new() })
    }

    /// Takes the next sample.
    pub(super) fn push(&mut self, sample: f32) -> Result<(), MediaError> {
        if !sample.is_finite() {
            return Err(MediaError::NotFinite { index: self.taken });
        }
        self.taken += 1;
        let Some(fft) = &self.fft else {
            if self.samples.len() == MOST_SAMPLES {
                return Err(MediaError::SoundTooLong);
            }
            self.samples.push(sample);
            return Ok(());
        };
        self.waiting.push(sample);
        if self.waiting.len() == fft.input_frames_next() { self.compute() } else { Ok(()) }
    }

    /// The whole sound at 16 kHz.
    pub(super) fn finish(mut self) -> Result<Vec<f32>, MediaError> {
        if let Some(fft) = &self.fft {
            let block = fft.input_frames_next();
            let length = (self.taken * u64::from(SAMPLE_RATE)).div_ceil(u64::from(self.rate)) as usize;
            // Zeros push the last samples through the filter.
            while self.samples.len() < length {
                self.waiting.resize(block, 0.0);
                self.compute()?;
            }
            self.samples.truncate(length);
        }
        Ok(self.samples)
    }

    /// Resamples the block that is waiting.
    fn compute(&mut self) -> Result<(), MediaError> {
        let Some(fft) = &mut self.fft else { return Ok(()) };
        let input = InterleavedSlice::new(&self.waiting, 1, self.waiting.len()).map_err(broken)?;
        let frames = self.block.len();
        let mut output = InterleavedSlice::new_mut(&mut self.block, 1, frames).map_err(broken)?;
        let (_, written) = fft.process_into_buffer(&input, &mut output, None).map_err(broken)?;
        let dropped = self.delay.min(written);
        self.delay -= dropped;
        self.samples.extend_from_slice(&self.block[dropped..written]);
        self.waiting.clear();
        // The zeros at the end may reach a block beyond the limit.
        if self.samples.len() > MOST_SAMPLES + self.block.len() {
            Err(MediaError::SoundTooLong)
        } else {
            Ok(())
        }
    }
}

fn broken(error: impl std::fmt::Display) -> MediaError {
    MediaError::BrokenSound { reason: error.to_string() }
}
