//! Files of every format, and damaged ones.

use std::f32::consts::TAU;

use proptest::prelude::*;
use rullama_media::{LogMel, Pixels, Samples, decode_image, decode_sound};
use safetensors::SafeTensors;

use crate::common::{read, wav};

const IMAGES: [&str; 5] = ["rgb.png", "progressive.jpg", "lossless.webp", "animated.gif", "packed.bmp"];
const SOUNDS: [&str; 5] = ["u8-8000.wav", "stereo.mp3", "stereo.flac", "stereo.ogg", "stereo.m4a"];

fn file(name: &str) -> Vec<u8> {
    read(&format!("files/{name}"))
}

fn image(name: &str) -> Pixels {
    decode_image(&file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn sound(name: &str) -> Samples {
    decode_sound(&file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn images_are_those_of_pillow() {
    let expected = read("files.safetensors");
    let expected = SafeTensors::deserialize(&expected).expect("a file of tensors");
    assert!(expected.len() > 20);
    for (name, tensor) in expected.tensors() {
        let found = image(&name);
        assert_eq!([found.height() as usize, found.width() as usize, 3], *tensor.shape(), "{name}");
        // Decoders of formats that lose information round differently.
        let allowed = if name.ends_with(".jpg") || name.starts_with("lossy") { LOSSY } else { 0 };
        let differences = found.bytes().iter().zip(tensor.data()).map(|(one, other)| one.abs_diff(*other));
        let difference = differences.max().unwrap_or(0);
        assert!(difference <= allowed, "{name}: {difference}");
    }
}

const LOSSY: u8 = 4;

#[test]
fn a_file_and_its_pixels_give_the_same_rows() {
    let name = "tiny-12b-301x200.png";
    assert_eq!(decode_image(&read(name)).expect("an image").digest(), crate::common::png(name).digest());
    let name = "tiny-e2b.wav";
    assert_eq!(decode_sound(&read(name)).expect("a sound").digest(), wav(name).digest());
}

/// The share of a sound that a sum of waves does not explain, and the amplitudes of these.
fn unexplained(samples: &[f32], frequencies: &[f32]) -> (f32, Vec<f32>) {
    let mut rest = samples.to_vec();
    let mut amplitudes = Vec::new();
    for frequency in frequencies {
        let wave = |at: usize, quarter: f32| (TAU * (frequency * at as f32 / 16_000.0 + quarter)).sin();
        let part = |quarter| {
            let product = |(at, sample): (usize, &f32)| f64::from(sample * wave(at, quarter));
            2.0 * rest.iter().enumerate().map(product).sum::<f64>() as f32 / rest.len() as f32
        };
        let (sine, cosine) = (part(0.0), part(0.25));
        amplitudes.push(sine.hypot(cosine));
        for (at, sample) in rest.iter_mut().enumerate() {
            *sample -= sine * wave(at, 0.0) + cosine * wave(at, 0.25);
        }
    }
    let power = |samples: &[f32]| samples.iter().map(|sample| sample * sample).sum::<f32>();
    (power(&rest) / power(samples), amplitudes)
}

/// Every file holds 0.3 s of a tone with amplitude 0.5, on the right a second one; both channels are mixed.
#[test]
fn sounds_are_the_tones_that_were_written() {
    let stereo = ["stereo.wav", "stereo.flac", "stereo.mp3", "stereo.ogg", "stereo.m4a"];
    let mono = ["u8-8000.wav", "alaw-8000.wav", "s24-16000.wav", "f32-48000.wav", "tagged.mp3"];
    let all = stereo
        .map(|name| (name, &[440.0, 660.0][..]))
        .into_iter()
        .chain(mono.map(|name| (name, &[440.0][..])));
    for (name, frequencies) in all {
        let sound = sound(name);
        let samples = sound.as_slice();
        // Some encoders fill their last packet.
        assert!((4800..=4800 + 64).contains(&samples.len()), "{name}: {} samples", samples.len());
        // Away from the ends, where a tone starts and stops suddenly.
        let (rest, amplitudes) = unexplained(&samples[800..4000], frequencies);
        assert!(rest < 0.001, "{name}: {rest}");
        // LAME makes every sound quieter, by a twentieth.
        let expected = 0.5 / frequencies.len() as f32 * if name.ends_with(".mp3") { 0.95 } else { 1.0 };
        for amplitude in amplitudes {
            assert!((amplitude / expected - 1.0).abs() < 0.02, "{name}: {amplitude}");
        }
    }
}

fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let dot = |one: &[f32], other: &[f32]| -> f64 {
        one.iter().zip(other).map(|(one, other)| f64::from(*one) * f64::from(*other)).sum()
    };
    dot(one, other) / (dot(one, one) * dot(other, other)).sqrt()
}

/// The same speech at 44.1 kHz, resampled by sox, gives nearly the same frames after it was resampled back.
#[test]
fn frames_of_another_sample_rate_agree() {
    let (expected, found) =
        (wav("tiny-e2b.wav"), decode_sound(&read("tiny-e2b-44100.flac")).expect("a sound"));
    assert_eq!(found.as_slice().len(), expected.as_slice().len());
    let [expected, found] = [expected, found].map(|sound| {
        let frames = LogMel::new().frames(sound.clips().next().expect("a clip"));
        frames.values().to_vec()
    });
    let worst = expected.chunks(128).zip(found.chunks(128)).map(|(one, other)| cosine(one, other));
    let worst = worst.fold(1.0, f64::min);
    assert!(worst >= 0.999, "{worst}");
}

#[test]
fn other_bytes_are_recognised_as_neither() {
    for bytes in [&b""[..], b"GIF", b"hello, world", b"%PDF-1.7 not an image", &[0; 4096]] {
        assert_eq!(decode_image(bytes).expect_err("no image").code(), "media.image.unknown");
        assert_eq!(decode_sound(bytes).expect_err("no sound").code(), "media.sound.unknown");
    }
    // One is not the other.
    assert_eq!(decode_image(&file("stereo.mp3")).expect_err("no image").code(), "media.image.unknown");
    assert_eq!(decode_sound(&file("rgb.png")).expect_err("no sound").code(), "media.sound.unknown");
}

#[test]
fn other_encodings_are_named() {
    let refused = decode_sound(&file("mono.opus")).expect_err("Opus is not read");
    assert_eq!(refused.code(), "media.sound.unsupported", "{refused}");
}

#[test]
fn files_that_end_early_are_refused() {
    for name in IMAGES {
        let bytes = file(name);
        let refused = decode_image(&bytes[..bytes.len() * 2 / 5]).expect_err(name);
        assert_eq!(refused.code(), "media.image.broken", "{name}: {refused}");
    }
    for name in SOUNDS {
        let bytes = file(name);
        let refused = decode_sound(&bytes[..bytes.len() / 2]).expect_err(name);
        let codes = ["media.sound.truncated", "media.sound.broken", "media.sound.unknown"];
        assert!(codes.contains(&refused.code()), "{name}: {refused}");
    }
}

/// Files in which the length of the sound is unknown, or is only guessed, are heard to their end.
#[test]
fn lengths_that_are_not_written_are_found() {
    let bytes = file("stereo.wav");
    let whole = sound("stereo.wav");
    let at = bytes.windows(4).position(|name| name == b"data").expect("samples") + 4;
    // As ffmpeg and sox write to pipes.
    for (all, length) in [(0xFFFF_FFFF_u32, 0xFFFF_FFFF_u32), (0x7FFF_F024, 0x7FFF_F000)] {
        let mut piped = bytes.clone();
        piped[4..8].copy_from_slice(&all.to_le_bytes());
        piped[at..at + 4].copy_from_slice(&length.to_le_bytes());
        assert_eq!(decode_sound(&piped).expect("a sound").digest(), whole.digest());
    }
    // Quiet at first, so that the first frames are small, and the file without a header says nothing of its length.
    let seconds = sound("headless.mp3").seconds();
    assert!((1.0..1.1).contains(&seconds), "{seconds}");
}

/// A header of forty bytes that asks for gigabytes.
#[test]
fn images_that_unpack_to_gigabytes_are_refused() {
    let png = |width: u32, height: u32, depth: u8, colour: u8| {
        let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[depth, colour, 0, 0, 0]].concat();
        let chunk = [b"IHDR", &header[..]].concat();
        let crc = crc(&chunk).to_be_bytes();
        [b"\x89PNG\r\n\x1a\n\0\0\0\r", &chunk[..], &crc, b"\0\0\0\0IDAT\x35\xaf\x06\x1e"].concat()
    };
    let code = |bytes: &[u8]| decode_image(bytes).expect_err("too large").code();
    assert_eq!(code(&png(10_001, 10_000, 8, 2)), "media.image.too_large");
    assert_eq!(code(&png(2_000_000, 1, 8, 2)), "media.image.too_large");
    assert_eq!(code(&png(10_000, 10_000, 16, 6)), "media.image.memory");
    assert_eq!(code(&png(0, 10, 8, 2)), "media.image.broken");
    let mut gif = file("animated.gif");
    gif[6..10].copy_from_slice(&[0xFF; 4]);
    assert_eq!(code(&gif), "media.image.too_large");
    gif[6..10].copy_from_slice(&[0; 4]);
    assert_eq!(code(&gif), "media.image.empty");
}

/// The checksum of a PNG's chunk.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(
            crc ^ u32::from(byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 },
        )
    })
}

/// A WAV file of f32.
fn float_wav(channels: u16, rate: u32, samples: &[f32]) -> Vec<u8> {
    let data: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    let block = channels.wrapping_mul(4);
    let mut bytes =
        [&b"RIFF"[..], &(36 + data.len() as u32).to_le_bytes(), b"WAVEfmt \x10\0\0\0\x03\0"].concat();
    bytes.extend(channels.to_le_bytes());
    bytes.extend(rate.to_le_bytes());
    bytes.extend((rate.wrapping_mul(block.into())).to_le_bytes());
    bytes.extend(block.to_le_bytes());
    bytes.extend([32, 0]);
    bytes.extend([b"data", &(data.len() as u32).to_le_bytes()[..], &data].concat());
    bytes
}

#[test]
fn impossible_sounds_are_refused() {
    let code =
        |bytes: &[u8]| decode_sound(bytes).map(|sound| sound.as_slice().len()).map_err(|error| error.code());
    assert_eq!(code(&float_wav(1, 16_000, &[0.5; 100])), Ok(100));
    assert_eq!(code(&float_wav(1, 16_000, &[])), Err("media.sound.empty"));
    assert_eq!(code(&float_wav(2, 16_000, &[0.0, 0.5, f32::NAN, 0.5])), Err("media.sound.not_finite"));
    assert_eq!(code(&float_wav(1, 44_100, &[f32::INFINITY; 8])), Err("media.sound.not_finite"));
    assert_eq!(code(&float_wav(1, 10, &[0.5; 100])), Err("media.sound.rate"));
    assert_eq!(code(&float_wav(1, 0, &[0.5; 100])).map_err(|_| ()), Err(()));
    assert_eq!(code(&float_wav(0, 16_000, &[0.5; 100])).map_err(|_| ()), Err(()));
    // Half an hour is the most; at a rate that needs no resampling, and at one that does.
    assert_eq!(code(&float_wav(1, 16_000, &vec![0.0; 16_000 * 1800 + 1])), Err("media.sound.too_long"));
    assert_eq!(code(&float_wav(1, 1_000, &vec![0.0; 1_000 * 1801])), Err("media.sound.too_long"));
    assert_eq!(code(&float_wav(1, 1_000, &vec![0.0; 1_000 * 60])), Ok(16_000 * 60));
    // One sample is a sound, at every rate.
    for rate in [1_000, 8_000, 16_000, 44_100, 96_001, 768_000] {
        assert_eq!(code(&float_wav(1, rate, &[0.5])), Ok(16_000_u32.div_ceil(rate) as usize), "{rate}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Damaged files give an image, a sound or an error, and nothing else.
    #[test]
    fn damaged_files_never_panic(
        which in 0..5_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        end in any::<prop::sample::Index>(),
    ) {
        for (name, decode) in [(IMAGES[which], image_code as fn(&[u8]) -> _), (SOUNDS[which], sound_code)] {
            let mut bytes = file(name);
            for (at, byte) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            decode(&bytes);
            decode(&bytes[..end.index(bytes.len())]);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        for magic in [&b""[..], b"\x89PNG\r\n\x1a\n", b"\xFF\xD8\xFF", b"GIF89a", b"BM", b"RIFF\xFF\0\0\0WEBP"] {
            image_code(&[magic, &bytes].concat());
        }
        for magic in [&b""[..], b"RIFF\xFF\0\0\0WAVE", b"fLaC", b"OggS", b"\0\0\0\x20ftypM4A ", b"\xFF\xFB\x90\x64"] {
            sound_code(&[magic, &bytes].concat());
        }
    }
}

fn image_code(bytes: &[u8]) -> Option<&'static str> {
    decode_image(bytes).map_err(|error| error.code()).err()
}

fn sound_code(bytes: &[u8]) -> Option<&'static str> {
    decode_sound(bytes).map_err(|error| error.code()).err()
}
