//! Images in files, by the `image` crate: PNG, JPEG, WebP, BMP and the first frame of a GIF.
//!
//! The result is what Pillow gives Hugging Face: turned as the Exif data ask, then converted to RGB, which drops opacity, and
//! the lower byte of sixteen bits. Colour profiles are ignored.

use std::io::Cursor;

use image::{
    ColorType, DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, RgbImage,
    metadata::Orientation,
};

use super::jpeg;
use crate::{MediaError, Pixels, pixels::check_size};

/// The most memory that a decoder may use, in bytes. It holds the largest image in RGBA.
const MOST_MEMORY: u64 = 512 << 20;

/// The formats that are read.
const FORMATS: [ImageFormat; 5] =
    [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP, ImageFormat::Gif, ImageFormat::Bmp];

/// Reads an image file: PNG, JPEG, WebP, BMP, or the first frame of a GIF.
pub fn decode_image(bytes: &[u8]) -> Result<Pixels, MediaError> {
    let format = image::guess_format(bytes).ok().filter(|format| FORMATS.contains(format));
    let format = format.ok_or(MediaError::UnknownImage)?;
    if format == ImageFormat::Jpeg && !jpeg::is_complete(bytes) {
        return Err(MediaError::BrokenImage { reason: "the file ends before the image does".to_owned() });
    }
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_MEMORY);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits.clone());
    let mut decoder = reader.into_decoder().map_err(error)?;
    let (width, height) = decoder.dimensions();
    check_size(width, height)?;
    limits.reserve(decoder.total_bytes()).map_err(error)?;
    // Exif data that make no sense are ignored, as everywhere.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let color = decoder.color_type();
    let mut decoded = vec![0; decoder.total_bytes() as usize];
    decoder.read_image(&mut decoded).map_err(error)?;
    upright(width, height, to_rgb(decoded, color)?, orientation)
}

/// Three bytes for each pixel, of what a decoder gives.
fn to_rgb(mut decoded: Vec<u8>, color: ColorType) -> Result<Vec<u8>, MediaError> {
    // Samples of sixteen bits lie in the order of this machine.
    let high_byte = usize::from(cfg!(target_endian = "little"));
    let samples: (usize, [usize; 3]) = match color {
        ColorType::Rgb8 => return Ok(decoded),
        ColorType::L8 => (1, [0; 3]),
        ColorType::La8 => (2, [0; 3]),
        ColorType::Rgba8 => (4, [0, 1, 2]),
        ColorType::L16 => (2, [high_byte; 3]),
        ColorType::La16 => (4, [high_byte; 3]),
        ColorType::Rgb16 => (6, [0, 2, 4].map(|at| at + high_byte)),
        ColorType::Rgba16 => (8, [0, 2, 4].map(|at| at + high_byte)),
        other => return Err(MediaError::BrokenImage { reason: format!("pixels of type {other:?}") }),
    };
    let (bytes_of_pixel, chosen) = samples;
    if bytes_of_pixel < chosen.len() {
        return Ok(decoded
            .chunks_exact(bytes_of_pixel)
            .flat_map(|pixel| chosen.map(|at| pixel[at]))
            .collect());
    }
    // In place: a second buffer of a large image would double the memory.
    let pixels = decoded.len() / bytes_of_pixel;
    for pixel in 0..pixels {
        let rgb = chosen.map(|at| decoded[pixel * bytes_of_pixel + at]);
        decoded[pixel * 3..][..3].copy_from_slice(&rgb);
    }
    decoded.truncate(pixels * 3);
    Ok(decoded)
}

/// The image turned or mirrored as the camera noted.
fn upright(width: u32, height: u32, bytes: Vec<u8>, orientation: Orientation) -> Result<Pixels, MediaError> {
    if orientation == Orientation::NoTransforms {
        return Pixels::from_rgb(width, height, bytes);
    }
    let found = bytes.len();
    let expected = u64::from(width) * u64::from(height) * 3;
    let wrong = MediaError::PixelBytes { width, height, found, expected };
    let mut image = DynamicImage::ImageRgb8(RgbImage::from_raw(width, height, bytes).ok_or(wrong)?);
    image.apply_orientation(orientation);
    Pixels::from_rgb(image.width(), image.height(), image.into_rgb8().into_raw())
}

fn error(error: ImageError) -> MediaError {
    match error {
        ImageError::Limits(_) => MediaError::ImageMemory { limit: MOST_MEMORY },
        other => MediaError::BrokenImage { reason: other.to_string() },
    }
}
