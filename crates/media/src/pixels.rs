//! A decoded image, from this crate or a browser: three bytes for each pixel.

use crate::{Budget, Digest, MediaError, TOKEN_SIDE, digest::Hasher, resize};

/// The most pixels of an image.
pub const MAX_PIXELS: u64 = 100_000_000;

/// The most pixels along a side. Tables of the resampling filter grow with it.
pub const MAX_SIDE: u32 = 1_000_000;

/// Bytes of a pixel.
pub(crate) const CHANNELS: usize = 3;

/// An image in RGB with eight bits a channel, row by row, turned upright.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pixels {
    width: u32,
    height: u32,
    bytes: Vec<u8>,
}

impl Pixels {
    /// An image of three bytes for each pixel: red, green, blue.
    pub fn from_rgb(width: u32, height: u32, bytes: Vec<u8>) -> Result<Self, MediaError> {
        check_size(width, height)?;
        check_length(width, height, bytes.len(), CHANNELS)?;
        Ok(Self { width, height, bytes })
    }

    /// An image of four bytes for each pixel, as a browser's canvas has them. The fourth, opacity, is dropped: Hugging Face
    /// converts images in the same way, so the models were trained with it.
    pub fn from_rgba(width: u32, height: u32, bytes: &[u8]) -> Result<Self, MediaError> {
        check_size(width, height)?;
        check_length(width, height, bytes.len(), CHANNELS + 1)?;
        let bytes = bytes.as_chunks::<4>().0.iter().flat_map(|&[red, green, blue, _]| [red, green, blue]);
        Ok(Self { width, height, bytes: bytes.collect() })
    }

    /// Pixels of a size that this crate computed.
    pub(crate) fn of_size([width, height]: [u32; 2], bytes: Vec<u8>) -> Self {
        debug_assert_eq!(bytes.len(), width as usize * height as usize * CHANNELS);
        Self { width, height, bytes }
    }

    /// Pixels in a row.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Red, green and blue of each pixel, row by row.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes of a row.
    pub(crate) fn row(&self, y: usize) -> &[u8] {
        let stride = self.width as usize * CHANNELS;
        &self.bytes[y * stride..][..stride]
    }

    /// The image in the size that fills `budget`. An image that has this size already is not changed.
    pub fn fitted(&self, budget: Budget) -> Result<Self, MediaError> {
        let size = budget.fit(self.width, self.height)?;
        Ok(if size == [self.width, self.height] { self.clone() } else { resize::bicubic(self, size) })
    }

    /// The same for a model that knows places for `longest` pixels along a side. Only thin images have longer sides.
    pub fn fitted_within(&self, budget: Budget, longest: u32) -> Result<Self, MediaError> {
        let size = budget.fit(self.width, self.height)?;
        let most = (longest / TOKEN_SIDE).max(1) * TOKEN_SIDE;
        if size.iter().all(|&side| side <= most) {
            return self.fitted(budget);
        }
        Ok(resize::bicubic(self, size.map(|side| side.min(most))))
    }

    /// What identifies the image among others, for example in a cache of encoded images. The budget is not part of it.
    pub fn digest(&self) -> Digest {
        let mut hasher = Hasher::new("image");
        hasher.add(&self.width.to_le_bytes());
        hasher.add(&self.height.to_le_bytes());
        hasher.add(&self.bytes);
        hasher.finish()
    }
}

/// Whether an image of this size may be read at all. Decoders ask before they need memory.
pub(crate) fn check_size(width: u32, height: u32) -> Result<(), MediaError> {
    if width == 0 || height == 0 {
        return Err(MediaError::EmptyImage { width, height });
    }
    let too_many = u64::from(width) * u64::from(height) > MAX_PIXELS;
    if too_many || width.max(height) > MAX_SIDE {
        return Err(MediaError::TooManyPixels { width, height });
    }
    Ok(())
}

fn check_length(width: u32, height: u32, found: usize, bytes_of_pixel: usize) -> Result<(), MediaError> {
    let expected = u64::from(width) * u64::from(height) * bytes_of_pixel as u64;
    if found as u64 == expected {
        Ok(())
    } else {
        Err(MediaError::PixelBytes { width, height, found, expected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_thin_images_are_shortened() {
        let fitted = |width, height, longest| {
            let image = Pixels::from_rgb(width, height, vec![9; 3 * (width * height) as usize]).unwrap();
            let budget = Budget::new(70).unwrap();
            let found = image.fitted_within(budget, longest).unwrap();
            [found.width(), found.height()]
        };
        assert_eq!(fitted(1, 5000, 2560), [48, 53 * 48]);
        assert_eq!(fitted(5000, 1, 10_000), [70 * 48, 48]);
        assert_eq!(fitted(300, 200, 2560), [480, 288]);
    }
}
