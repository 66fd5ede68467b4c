//! An image as an encoder reads it: squares of pixels as rows of numbers, and where each square is.

use crate::{Budget, MediaError, Pixels, TOKEN_SIDE, pixels::CHANNELS};

/// How a model sees. Its file decides: a projector of type `gemma4v` has a tower, one of type `gemma4uv` has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Vision {
    /// By a vision transformer, as E2B, E4B, 26B-A4B and 31B do. It reads patches of 16 pixels with values from -1 to 1, and
    /// pools three by three of them into a soft token.
    Tower,
    /// By one projection, as 12B does. It reads patches of 48 pixels with values from 0 to 1, each of which becomes a soft
    /// token.
    EncoderFree,
}

impl Vision {
    /// Pixels along a side of a patch.
    pub fn patch_side(self) -> u32 {
        match self {
            Self::Tower => TOKEN_SIDE / 3,
            Self::EncoderFree => TOKEN_SIDE,
        }
    }

    /// Numbers that a patch consists of: 768 or 6912.
    pub fn patch_width(self) -> u32 {
        self.patch_side() * self.patch_side() * CHANNELS as u32
    }

    /// What a byte of a pixel becomes. Hugging Face divides by 255 when it prepares an image; its tower then stretches the
    /// range, which is done here so that it is done once.
    fn value(self, byte: u8) -> f32 {
        let value = f32::from(byte) * (1.0 / 255.0);
        match self {
            Self::Tower => 2.0 * (value - 0.5),
            Self::EncoderFree => value,
        }
    }
}

/// The patches of an image: one row of numbers for each, row by row of the image.
///
/// Within a patch, all red values come first, then the green and the blue ones, each row by row. GGUF files store the weights
/// in this order (Hugging Face's checkpoints have the channels innermost).
#[derive(Debug, Clone, PartialEq)]
pub struct Patches {
    vision: Vision,
    columns: u32,
    rows: u32,
    values: Vec<f32>,
}

impl Patches {
    /// Cuts an image into patches. Its sides must be multiples of [`TOKEN_SIDE`], with no more soft tokens than the largest
    /// budget has, as [`Pixels::fitted`] makes them.
    pub fn new(image: &Pixels, vision: Vision) -> Result<Self, MediaError> {
        let [width, height] = [image.width(), image.height()];
        let is_whole = width.is_multiple_of(TOKEN_SIDE) && height.is_multiple_of(TOKEN_SIDE);
        let tokens = u64::from(width / TOKEN_SIDE) * u64::from(height / TOKEN_SIDE);
        let most = Budget::ALL[Budget::ALL.len() - 1].soft_tokens();
        if !is_whole || tokens > u64::from(most) {
            return Err(MediaError::NotFitted { width, height });
        }
        let scale: [f32; 256] = std::array::from_fn(|byte| vision.value(byte as u8));
        let side = vision.patch_side() as usize;
        let [columns, rows] = [width, height].map(|length| length / vision.patch_side());
        let mut values = Vec::with_capacity(image.bytes().len());
        for (row, column) in (0..rows as usize).flat_map(|row| (0..columns as usize).map(move |at| (row, at)))
        {
            for channel in 0..CHANNELS {
                for y in row * side..(row + 1) * side {
                    let line = &image.row(y)[column * side * CHANNELS..][..side * CHANNELS];
                    values.extend(
                        line.iter().skip(channel).step_by(CHANNELS).map(|&byte| scale[usize::from(byte)]),
                    );
                }
            }
        }
        Ok(Self { vision, columns, rows, values })
    }

    /// How the model sees that these are for.
    pub fn vision(&self) -> Vision {
        self.vision
    }

    /// How many patches there are.
    pub fn count(&self) -> u32 {
        self.columns * self.rows
    }

    /// Patches along the image's width.
    pub fn columns(&self) -> u32 {
        self.columns
    }

    /// Patches along the image's height.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// The numbers of all patches, [`Vision::patch_width`] for each.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Column and row of each patch, counted from zero.
    pub fn positions(&self) -> impl Iterator<Item = [u32; 2]> + use<> {
        let columns = self.columns;
        (0..self.rows).flat_map(move |row| (0..columns).map(move |column| [column, row]))
    }

    /// Soft tokens along the image's width and height, row by row: their product is how many the image becomes.
    pub fn soft_tokens(&self) -> [u32; 2] {
        [self.columns, self.rows].map(|patches| patches * self.vision.patch_side() / TOKEN_SIDE)
    }
}
