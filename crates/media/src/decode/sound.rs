//! Sound in files, by symphonia: WAV, MP3, FLAC, Ogg Vorbis, and M4A with AAC. All channels are mixed to one.

use std::io::{Cursor, ErrorKind};

use symphonia::{
    core::{
        codecs::{CodecParameters, audio::AudioDecoderOptions},
        common::Limit,
        errors::Error,
        formats::{FormatOptions, FormatReader, Track, TrackType, probe::Hint},
        io::{MediaSourceStream, MediaSourceStreamOptions},
        meta::MetadataOptions,
    },
    default::{get_codecs, get_probe},
};

use super::resample::Resampler;
use crate::{MediaError, Samples};

/// The most channels of a sound.
const MOST_CHANNELS: usize = 32;

/// The most packets of a sound. Files can promise any number of empty ones.
const MOST_PACKETS: u64 = 4_000_000;

/// The most bytes of a tag or a cover that are kept while a file is read. Nothing of them is used.
const MOST_TAG_BYTES: usize = 64 << 10;

/// Reads a sound file: WAV, MP3, FLAC, Ogg Vorbis, or M4A with AAC.
///
/// A file that ends before its sound does is refused, and so is one with a packet that cannot be decoded.
pub fn decode_sound(bytes: &[u8]) -> Result<Samples, MediaError> {
    let mut format = open(bytes)?;
    let track = choose(&*format)?;
    let (id, promised) = (track.id, promised(track));
    let Some(CodecParameters::Audio(parameters)) = &track.codec_params else {
        return Err(MediaError::UnknownSound);
    };
    let options = AudioDecoderOptions::default();
    let mut decoder = get_codecs().make_audio_decoder(parameters, &options).map_err(error)?;
    let mut mixer = None;
    let mut interleaved: Vec<f32> = Vec::new();
    let mut packets = 0;
    while let Some(packet) = next_packet(&mut *format)? {
        packets += 1;
        if packets > MOST_PACKETS {
            return Err(MediaError::SoundTooLong);
        }
        if packet.track_id != id {
            continue;
        }
        let decoded = decoder.decode(&packet).map_err(error)?;
        let shape = Shape { rate: decoded.spec().rate(), channels: decoded.spec().channels().count() };
        if decoded.frames() == 0 {
            continue;
        }
        let mixer = match &mut mixer {
            Some(mixer) => mixer,
            None => mixer.insert(Mixer::new(shape)?),
        };
        decoded.copy_to_vec_interleaved(&mut interleaved);
        mixer.add(shape, &interleaved)?;
    }
    let mixer = mixer.ok_or(MediaError::EmptySound)?;
    let found = mixer.resampler.taken();
    match promised {
        Some(expected) if found < expected => Err(MediaError::TruncatedSound { found, expected }),
        _ => Samples::new(mixer.resampler.finish()?),
    }
}

fn open(bytes: &[u8]) -> Result<Box<dyn FormatReader + '_>, MediaError> {
    let stream = MediaSourceStream::new(Box::new(Cursor::new(bytes)), MediaSourceStreamOptions::default());
    let limit = Limit::Maximum(MOST_TAG_BYTES);
    let metadata = MetadataOptions::default().limit_tag_bytes(limit).limit_visual_bytes(limit);
    // Whatever goes wrong here: no format was recognised, or its first bytes make no sense.
    get_probe().probe(&Hint::new(), stream, FormatOptions::default(), metadata).map_err(|failure| {
        match failure {
            Error::Unsupported(_) => MediaError::UnknownSound,
            Error::IoError(failure) if failure.kind() == ErrorKind::UnexpectedEof => MediaError::UnknownSound,
            other => error(other),
        }
    })
}

/// The track that is heard: the default one, or the first whose codec is known.
fn choose<'f>(format: &'f dyn FormatReader) -> Result<&'f Track, MediaError> {
    let track = format.default_track(TrackType::Audio);
    track.or_else(|| format.first_track_known_codec(TrackType::Audio)).ok_or(MediaError::UnknownSound)
}

/// Samples of each channel that the file must have, if it says so.
fn promised(track: &Track) -> Option<u64> {
    track.num_frames
}

fn next_packet(format: &mut dyn FormatReader) -> Result<Option<symphonia::core::packet::Packet>, MediaError> {
    match format.next_packet() {
        // Files that end in the middle of a packet are recognised by what is missing.
        Err(Error::IoError(failure)) if failure.kind() == ErrorKind::UnexpectedEof => Ok(None),
        other => other.map_err(error),
    }
}

/// What may not change within a sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    rate: u32,
    channels: usize,
}

/// Mixes channels to one, and resamples it.
struct Mixer {
    shape: Shape,
    resampler: Resampler,
}

impl Mixer {
    fn new(shape: Shape) -> Result<Self, MediaError> {
        if !(1..=MOST_CHANNELS).contains(&shape.channels) {
            return Err(MediaError::Channels { found: shape.channels, limit: MOST_CHANNELS });
        }
        Ok(Self { shape, resampler: Resampler::new(shape.rate)? })
    }

    /// Takes samples, those of all channels beside one another.
    fn add(&mut self, shape: Shape, interleaved: &[f32]) -> Result<(), MediaError> {
        if shape != self.shape {
            let reason = "its sample rate or its channels change".to_owned();
            return Err(MediaError::BrokenSound { reason });
        }
        let count = shape.channels as f32;
        interleaved
            .chunks_exact(shape.channels)
            .try_for_each(|channels| self.resampler.push(channels.iter().sum::<f32>() / count))
    }
}

fn error(error: Error) -> MediaError {
    MediaError::BrokenSound { reason: error.to_string() }
}
