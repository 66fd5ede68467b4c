//! A decoded sound, from this crate or a browser: the waveform at 16 kHz, and the clips that it is cut into.

use crate::{Digest, MediaError, digest::Hasher};

/// Samples per second of every sound that a model hears.
pub const SAMPLE_RATE: u32 = 16_000;

/// The longest clip that is encoded at once, in samples: half a minute.
pub const MAX_CLIP: usize = 30 * SAMPLE_RATE as usize;

/// The longest sound, in seconds.
pub const MAX_SECONDS: u32 = 30 * 60;

/// A sound with one channel, 16,000 samples a second, in the range from -1 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples(Vec<f32>);

impl Samples {
    /// A sound of these samples. Louder ones than 1 stay as they are, as in Hugging Face.
    pub fn new(samples: Vec<f32>) -> Result<Self, MediaError> {
        if samples.is_empty() {
            return Err(MediaError::EmptySound);
        }
        if samples.len() > MAX_SECONDS as usize * SAMPLE_RATE as usize {
            return Err(MediaError::SoundTooLong);
        }
        match samples.iter().position(|sample| !sample.is_finite()) {
            Some(index) => Err(MediaError::NotFinite { index: index as u64 }),
            None => Ok(Self(samples)),
        }
    }

    /// The samples.
    pub fn as_slice(&self) -> &[f32] {
        &self.0
    }

    /// How long the sound is, in seconds.
    pub fn seconds(&self) -> f64 {
        self.0.len() as f64 / f64::from(SAMPLE_RATE)
    }

    /// The sound in clips of half a minute, of which the last may be shorter. Each is encoded by itself; the soft tokens of all
    /// stand behind one another between one pair of sentinels.
    pub fn clips(&self) -> impl ExactSizeIterator<Item = Clip<'_>> {
        self.0.chunks(MAX_CLIP).map(Clip)
    }

    /// What identifies the sound among others, for example in a cache of encoded sounds.
    pub fn digest(&self) -> Digest {
        let mut hasher = Hasher::new("sound");
        self.0.iter().for_each(|sample| hasher.add(&sample.to_le_bytes()));
        hasher.finish()
    }
}

/// At most half a minute of a sound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clip<'s>(&'s [f32]);

impl<'s> Clip<'s> {
    /// Its samples.
    pub fn as_slice(self) -> &'s [f32] {
        self.0
    }
}
