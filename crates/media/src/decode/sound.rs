//! Sound in files, by symphonia: WAV, MP3, FLAC, Ogg Vorbis, and M4A with AAC. All channels are mixed to one.

use std::io::{Cursor, ErrorKind};

use symphonia::{
    core::{
        codecs::{
            CodecParameters,
            audio::{AudioCodecParameters, AudioDecoderOptions},
        },
        common::Limit,
        errors::Error,
        formats::{
            FormatOptions, FormatReader, Track, TrackType,
            probe::Hint,
            well_known::{FORMAT_ID_ADTS, FORMAT_ID_ISOMP4, FORMAT_ID_MP3, FORMAT_ID_WAVE},
        },
        io::{MediaSource, MediaSourceStream, MediaSourceStreamOptions, ReadOnlySource},
        meta::MetadataOptions,
        packet::Packet,
    },
    default::{get_codecs, get_probe},
};

use super::{mp4, resample::Resampler};
use crate::{MediaError, Samples};

/// The most channels of a sound.
const MOST_CHANNELS: usize = 32;

/// The most packets of a sound. Files can promise any number of empty ones.
const MOST_PACKETS: u64 = 4_000_000;

/// The most bytes of a tag or a cover that are kept while a file is read. Nothing of them is used.
const MOST_TAG_BYTES: usize = 64 << 10;

/// A WAV file with at least so many bytes of samples was written to a pipe, before its length was known.
const UNKNOWN_LENGTH: u64 = 0x7FFF_0000;

/// Reads a sound file: WAV, MP3, FLAC, Ogg Vorbis, or M4A with AAC.
///
/// A file that ends before its sound does is refused, and so is one with a packet that cannot be decoded.
pub fn decode_sound(bytes: &[u8]) -> Result<Samples, MediaError> {
    let mut format = open(bytes)?;
    let track = choose(&*format)?;
    let Some(CodecParameters::Audio(parameters)) = &track.codec_params else {
        return Err(MediaError::UnknownSound);
    };
    let (id, promised) = (track.id, promised(&*format, track, parameters));
    let mut skipped = skipped(bytes, &*format, track, parameters);
    let mut decoder =
        get_codecs().make_audio_decoder(parameters, &AudioDecoderOptions::default()).map_err(error)?;
    let mut mixer = None;
    let mut interleaved: Vec<f32> = Vec::new();
    let mut found = 0;
    for _ in 0..MOST_PACKETS {
        let Some(packet) = next_packet(&mut *format)? else {
            return match promised {
                Some(expected) if found < expected => Err(MediaError::TruncatedSound { found, expected }),
                _ => Samples::new(mixer.map_or_else(|| Ok(Vec::new()), Mixer::finish)?),
            };
        };
        if packet.track_id != id {
            continue;
        }
        let decoded = decoder.decode(&packet).map_err(error)?;
        if decoded.frames() == 0 {
            continue;
        }
        let shape = Shape { rate: decoded.spec().rate(), channels: decoded.spec().channels().count() };
        let mixer = match &mut mixer {
            Some(mixer) => mixer,
            None => mixer.insert(Mixer::new(shape)?),
        };
        decoded.copy_to_vec_interleaved(&mut interleaved);
        found += decoded.frames() as u64;
        let dropped = skipped.min(decoded.frames() as u64);
        skipped -= dropped;
        mixer.add(shape, &interleaved[dropped as usize * shape.channels..])?;
    }
    Err(MediaError::SoundTooLong)
}

/// Recognises the format and reads its header.
fn open(bytes: &[u8]) -> Result<Box<dyn FormatReader + '_>, MediaError> {
    let format = probe(Box::new(Cursor::new(bytes)))?;
    // Streams without a header have no length. symphonia would guess one from the size of the file, and end the sound there;
    // it does not where it cannot see the size.
    match format.format_info().format {
        FORMAT_ID_MP3 | FORMAT_ID_ADTS => probe(Box::new(ReadOnlySource::new(Cursor::new(bytes)))),
        _ => Ok(format),
    }
}

fn probe<'b>(source: Box<dyn MediaSource + 'b>) -> Result<Box<dyn FormatReader + 'b>, MediaError> {
    let stream = MediaSourceStream::new(source, MediaSourceStreamOptions::default());
    let limit = Limit::Maximum(MOST_TAG_BYTES);
    let metadata = MetadataOptions::default().limit_tag_bytes(limit).limit_visual_bytes(limit);
    get_probe().probe(&Hint::new(), stream, FormatOptions::default(), metadata).map_err(|failure| {
        match failure {
            // No format was recognised.
            Error::Unsupported(_) => MediaError::UnknownSound,
            Error::IoError(failure) if failure.kind() == ErrorKind::UnexpectedEof => MediaError::UnknownSound,
            other => error(other),
        }
    })
}

/// The track that is heard: the default one, or the first whose codec is known.
fn choose(format: &dyn FormatReader) -> Result<&Track, MediaError> {
    let track = format.default_track(TrackType::Audio);
    track.or_else(|| format.first_track_known_codec(TrackType::Audio)).ok_or(MediaError::UnknownSound)
}

/// Samples of each channel that the file must have, if it says so.
fn promised(format: &dyn FormatReader, track: &Track, parameters: &AudioCodecParameters) -> Option<u64> {
    let frames = track.num_frames?;
    let channels = parameters.channels.as_ref().map_or(1, |channels| channels.count() as u64);
    let bytes = u64::from(parameters.bits_per_sample.unwrap_or(8)).div_ceil(8);
    let is_unknown = format.format_info().format == FORMAT_ID_WAVE
        && frames.saturating_mul(channels).saturating_mul(bytes) >= UNKNOWN_LENGTH;
    (!is_unknown).then_some(frames)
}

/// Samples of each channel that are dropped at the start.
fn skipped(bytes: &[u8], format: &dyn FormatReader, track: &Track, parameters: &AudioCodecParameters) -> u64 {
    if format.format_info().format != FORMAT_ID_ISOMP4 {
        return 0;
    }
    let (Some(base), Some(rate)) = (track.time_base, parameters.sample_rate) else { return 0 };
    let units = u128::from(mp4::skipped(bytes, track.id));
    let samples = units * u128::from(rate) * u128::from(base.numer.get()) / u128::from(base.denom.get());
    samples.try_into().unwrap_or(u64::MAX)
}

fn next_packet(format: &mut dyn FormatReader) -> Result<Option<Packet>, MediaError> {
    match format.next_packet() {
        // A file that ends in the middle of a packet is recognised by what is missing.
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

    /// The whole sound at 16 kHz.
    fn finish(self) -> Result<Vec<f32>, MediaError> {
        self.resampler.finish()
    }
}

fn error(error: Error) -> MediaError {
    match error {
        Error::Unsupported(what) => MediaError::UnsupportedSound { reason: what.to_owned() },
        other => MediaError::BrokenSound { reason: other.to_string() },
    }
}
