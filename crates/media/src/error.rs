//! Errors of reading images and sound.

use crate::{Budget, MAX_PIXELS, MAX_SECONDS, MAX_SIDE};

/// Why an image or a sound cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MediaError {
    /// A number of soft tokens that no model was trained with.
    #[error("an image can't have a budget of {found} soft tokens (expected one of {})", Budget::list())]
    Budget {
        /// The number asked for.
        found: u32,
    },

    /// An image without pixels.
    #[error("the image has no pixels: it is {width}×{height}")]
    EmptyImage {
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
    },

    /// An image that is larger than any that is read.
    #[error(
        "the image is too large: {width}×{height} (at most {MAX_PIXELS} pixels, and {MAX_SIDE} along a side)"
    )]
    TooManyPixels {
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
    },

    /// Fewer or more bytes of pixels than the size asks for.
    #[error("an image of {width}×{height} has {found} bytes of pixels (expected {expected})")]
    PixelBytes {
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
        /// The bytes given.
        found: usize,
        /// The bytes that the size asks for.
        expected: u64,
    },

    /// A size that cannot be cut into patches.
    #[error("an image of {width}×{height} can't be cut into patches: fit it to a budget first")]
    NotFitted {
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
    },

    /// Bytes that are no image of a known format.
    #[error("this is not an image that can be read (expected PNG, JPEG, WebP, GIF or BMP)")]
    UnknownImage,

    /// An image that is damaged, incomplete or written in a way that cannot be read.
    #[error("the image can't be decoded: {reason}")]
    BrokenImage {
        /// What the decoder says.
        reason: String,
    },

    /// An image whose decoder needs more memory than it is given.
    #[error("decoding the image takes too much memory (at most {limit} bytes)")]
    ImageMemory {
        /// The most that a decoder may use.
        limit: u64,
    },

    /// A sound without samples.
    #[error("the sound is empty")]
    EmptySound,

    /// A sound that is longer than any that is read.
    #[error("the sound is too long (at most {MAX_SECONDS} seconds)")]
    SoundTooLong,

    /// A sample that is infinite or not a number.
    #[error("sample {index} of the sound is not a finite number")]
    NotFinite {
        /// The first such sample.
        index: u64,
    },

    /// Bytes that are no sound of a known format.
    #[error("this is not a sound that can be read (expected WAV, MP3, FLAC, Ogg Vorbis or M4A with AAC)")]
    UnknownSound,

    /// A sound that is damaged or written in a way that cannot be read.
    #[error("the sound can't be decoded: {reason}")]
    BrokenSound {
        /// What the decoder says.
        reason: String,
    },

    /// A sound in a known file format, whose encoding cannot be read.
    #[error("the sound's encoding can't be read: {reason}")]
    UnsupportedSound {
        /// What the decoder says.
        reason: String,
    },

    /// A file that ends before its sound does.
    #[error("the sound is incomplete: {found} of {expected} samples are there")]
    TruncatedSound {
        /// Samples of each channel that could be decoded.
        found: u64,
        /// Samples that the file promises.
        expected: u64,
    },

    /// A sound without channels, or with more than any that is read.
    #[error("the sound has {found} channels (expected 1 to {limit})")]
    Channels {
        /// How many it has.
        found: usize,
        /// The most that are read.
        limit: usize,
    },

    /// A sample rate that no recording has.
    #[error("the sound has a sample rate of {found} Hz (expected {least} to {most})")]
    SampleRate {
        /// The rate.
        found: u32,
        /// The lowest that is read.
        least: u32,
        /// The highest that is read.
        most: u32,
    },
}

impl MediaError {
    /// A short string for this kind of failure that stays the same between versions.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Budget { .. } => "media.image.budget",
            Self::EmptyImage { .. } => "media.image.empty",
            Self::TooManyPixels { .. } => "media.image.too_large",
            Self::PixelBytes { .. } | Self::NotFitted { .. } => "media.image.size",
            Self::UnknownImage => "media.image.unknown",
            Self::BrokenImage { .. } => "media.image.broken",
            Self::ImageMemory { .. } => "media.image.memory",
            Self::EmptySound => "media.sound.empty",
            Self::SoundTooLong => "media.sound.too_long",
            Self::NotFinite { .. } => "media.sound.not_finite",
            Self::UnknownSound => "media.sound.unknown",
            Self::UnsupportedSound { .. } => "media.sound.unsupported",
            Self::BrokenSound { .. } => "media.sound.broken",
            Self::TruncatedSound { .. } => "media.sound.truncated",
            Self::Channels { .. } => "media.sound.channels",
            Self::SampleRate { .. } => "media.sound.rate",
        }
    }
}
