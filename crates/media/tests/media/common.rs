//! What the tests share: the test data, read without this crate's decoders, which browsers do not have.

use std::{fs, io::Cursor, path::PathBuf};

use rullama_media::{Pixels, Samples};
use safetensors::SafeTensors;

/// A file of `testdata/media`.
pub(crate) fn read(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/media").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A PNG file in RGB with eight bits.
pub(crate) fn png(name: &str) -> Pixels {
    let mut reader = png::Decoder::new(Cursor::new(read(name))).read_info().expect("a PNG file");
    let mut bytes = vec![0; reader.output_buffer_size().expect("a small image")];
    let info = reader.next_frame(&mut bytes).expect("an image");
    assert_eq!((info.color_type, info.bit_depth), (png::ColorType::Rgb, png::BitDepth::Eight), "{name}");
    Pixels::from_rgb(info.width, info.height, bytes).expect("the size fits the bytes")
}

/// A WAV file with one channel, 16 bits and 16 kHz, and a header of 44 bytes.
pub(crate) fn wav(name: &str) -> Samples {
    let bytes = read(name);
    assert!(bytes.starts_with(b"RIFF") && &bytes[36..40] == b"data", "{name}");
    let (samples, _) = bytes[44..].as_chunks();
    Samples::new(samples.iter().map(|&sample| f32::from(i16::from_le_bytes(sample)) / 32768.0).collect())
        .expect("a sound")
}

/// A tensor of f32 in a file of `testdata/media`, with its extents.
pub(crate) fn tensor(file: &[u8], name: &str) -> (Vec<usize>, Vec<f32>) {
    let tensors = SafeTensors::deserialize(file).expect("a file of tensors");
    let tensor = tensors.tensor(name).unwrap_or_else(|_| panic!("tensor `{name}`"));
    assert_eq!(tensor.dtype(), safetensors::Dtype::F32, "{name}");
    let (values, _) = tensor.data().as_chunks();
    (tensor.shape().to_vec(), values.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect())
}

/// A tensor of i32.
pub(crate) fn integers(file: &[u8], name: &str) -> Vec<i32> {
    let tensors = SafeTensors::deserialize(file).expect("a file of tensors");
    let tensor = tensors.tensor(name).unwrap_or_else(|_| panic!("tensor `{name}`"));
    assert_eq!(tensor.dtype(), safetensors::Dtype::I32, "{name}");
    let (values, _) = tensor.data().as_chunks();
    values.iter().map(|&bytes| i32::from_le_bytes(bytes)).collect()
}

/// The bytes of the linear congruential generator in `testdata/media/make.py`.
pub(crate) fn noise(count: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// The largest difference between two rows of numbers of the same length.
pub(crate) fn distance(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    found.iter().zip(expected).map(|(one, other)| (one - other).abs()).fold(0.0, f32::max)
}
