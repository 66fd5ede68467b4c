//! Block formats: how weights are quantised in a file, and their way to f32 and back.
//!
//! A tensor's rows are divided into blocks of a fixed number of values, each block a fixed number of bytes.
//! Every format that ggml reads is decoded here; those that this project writes are encoded too. Neither
//! direction allocates, and neither trusts the bytes: any bytes decode to some values, possibly NaN.
//!
//! ```
//! use rullama_gguf::format::Format;
//!
//! # fn main() -> Result<(), rullama_gguf::format::FormatError> {
//! let weights: Vec<f32> = (0..256).map(|i| (i as f32 / 40.0).sin()).collect();
//! let mut blocks = vec![0; 144];
//! Format::Q4_K.encode(&weights, &mut blocks)?;
//!
//! let mut decoded = vec![0.0; 256];
//! Format::Q4_K.decode(&blocks, &mut decoded)?;
//! assert!(weights.iter().zip(&decoded).all(|(a, b)| (a - b).abs() < 0.1));
//! # Ok(())
//! # }
//! ```

mod blocks32;
mod encode;
mod error;
mod float16;
mod four_bit_tables;
mod grids;
mod iq;
mod k_quants;
mod layout;
mod low_bit;
mod scalar;
mod simd;

use std::fmt;
use std::str::FromStr;

use simd::{Work, for_each_chunk};

pub use error::{FormatError, UnknownFormat, UnknownFormatName};

/// Declares the formats: variant, id in files, values and bytes of one block.
macro_rules! formats {
    ($($(#[$doc:meta])* $name:ident = $id:literal, $block_len:literal, $block_bytes:literal;)*) => {
        /// How the values of a tensor are stored.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(non_camel_case_types, reason = "the spelling that every GGUF tool and model name uses")]
        #[non_exhaustive]
        pub enum Format {
            $($(#[$doc])* $name = $id,)*
        }

        impl Format {
            /// Every format, in the order of their ids.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The name that GGUF tools use, such as `Q4_K`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// How many values one block holds.
            pub const fn block_len(self) -> usize {
                match self {
                    $(Self::$name => $block_len,)*
                }
            }

            /// How many bytes one block takes.
            pub const fn block_bytes(self) -> usize {
                match self {
                    $(Self::$name => $block_bytes,)*
                }
            }

            /// The format that a file means by a type id.
            pub const fn from_id(id: u32) -> Result<Self, UnknownFormat> {
                match id {
                    $($id => Ok(Self::$name),)*
                    4 | 5 | 31..=33 | 36..=38 => Err(UnknownFormat::Removed { id }),
                    _ => Err(UnknownFormat::Unknown { id }),
                }
            }
        }
    };
}

formats! {
    /// Single precision.
    F32 = 0, 1, 4;
    /// IEEE half precision.
    F16 = 1, 1, 2;
    /// Four bits and a scale.
    Q4_0 = 2, 32, 18;
    /// Four bits, a scale and an offset.
    Q4_1 = 3, 32, 20;
    /// Five bits and a scale.
    Q5_0 = 6, 32, 22;
    /// Five bits, a scale and an offset.
    Q5_1 = 7, 32, 24;
    /// Signed bytes and a scale.
    Q8_0 = 8, 32, 34;
    /// As `Q8_0` with the sum of the block; an intermediate of ggml's, unusual in files.
    Q8_1 = 9, 32, 36;
    /// Two bits; sub-blocks of 16 with four-bit scales and minimums.
    Q2_K = 10, 256, 84;
    /// Three bits; sub-blocks of 16 with six-bit scales.
    Q3_K = 11, 256, 110;
    /// Four bits; sub-blocks of 32 with six-bit scales and minimums.
    Q4_K = 12, 256, 144;
    /// Five bits; sub-blocks of 32 with six-bit scales and minimums.
    Q5_K = 13, 256, 176;
    /// Six bits; sub-blocks of 16 with eight-bit scales.
    Q6_K = 14, 256, 210;
    /// Signed bytes, an f32 scale and sums; an intermediate of ggml's, unusual in files.
    Q8_K = 15, 256, 292;
    /// About 2.06 bits; a book of 256 eight-value entries.
    IQ2_XXS = 16, 256, 66;
    /// About 2.31 bits; a book of 512 eight-value entries.
    IQ2_XS = 17, 256, 74;
    /// About 3.06 bits; a book of 256 four-value entries.
    IQ3_XXS = 18, 256, 98;
    /// About 1.56 bits; a book of 2048 eight-value entries.
    IQ1_S = 19, 256, 50;
    /// Four bits on a curve, and a scale.
    IQ4_NL = 20, 32, 18;
    /// About 3.44 bits; a book of 512 four-value entries.
    IQ3_S = 21, 256, 110;
    /// About 2.56 bits; a book of 1024 eight-value entries.
    IQ2_S = 22, 256, 82;
    /// Four bits on a curve; sub-blocks of 32 with six-bit scales.
    IQ4_XS = 23, 256, 136;
    /// Signed bytes.
    I8 = 24, 1, 1;
    /// Signed two-byte integers.
    I16 = 25, 1, 2;
    /// Signed four-byte integers.
    I32 = 26, 1, 4;
    /// Signed eight-byte integers.
    I64 = 27, 1, 8;
    /// Double precision.
    F64 = 28, 1, 8;
    /// About 1.75 bits; the book of `IQ1_S` with finer scales.
    IQ1_M = 29, 256, 56;
    /// The upper half of single precision.
    BF16 = 30, 1, 2;
    /// Base-3 digits, five to a byte.
    TQ1_0 = 34, 256, 54;
    /// Base-3 digits of two bits each.
    TQ2_0 = 35, 256, 66;
    /// Four-bit floats with a power of two for each 32.
    MXFP4 = 39, 32, 17;
    /// Four-bit floats with an eight-bit float for each 16.
    NVFP4 = 40, 64, 36;
    /// One bit and a scale.
    Q1_0 = 41, 128, 18;
    /// Two bits and a scale.
    Q2_0 = 42, 64, 18;
}

impl Format {
    /// The highest id in use.
    pub(crate) const LAST_ID: u32 = Self::ALL[Self::ALL.len() - 1].id();

    /// The type id that stands for this format in files.
    pub const fn id(self) -> u32 {
        self as u32
    }

    /// Whether values share a block, as opposed to each being a number of its own.
    pub const fn is_quantised(self) -> bool {
        self.block_len() > 1
    }

    /// Whether [`encode`](Self::encode) writes this format.
    pub const fn can_encode(self) -> bool {
        matches!(
            self,
            Self::F32
                | Self::F16
                | Self::BF16
                | Self::Q8_0
                | Self::Q5_0
                | Self::Q4_0
                | Self::Q4_K
                | Self::Q6_K
        )
    }

    /// How many bytes a row of this many values takes.
    ///
    /// `None` if the row is not a whole number of blocks, or if the answer exceeds a `u64`.
    pub const fn row_bytes(self, values: u64) -> Option<u64> {
        let block_len = self.block_len() as u64;
        if !values.is_multiple_of(block_len) {
            return None;
        }
        (values / block_len).checked_mul(self.block_bytes() as u64)
    }

    /// This format where rows of `row` values are whole blocks of it; otherwise the one that llama.cpp's
    /// quantiser takes in its place.
    pub fn fitting(self, row: u64) -> Self {
        let fits = |format: &Self| row.is_multiple_of(format.block_len() as u64);
        let shorter = match self {
            Self::Q2_K | Self::Q3_K | Self::Q4_K => Self::Q5_0,
            Self::Q5_K => Self::Q5_1,
            Self::Q6_K => Self::Q8_0,
            _ => Self::F16,
        };
        [self, shorter].into_iter().find(fits).unwrap_or(Self::F16)
    }

    /// Decodes whole blocks; `out` has room for exactly their values.
    ///
    /// Values are those of ggml's own decoder. `F64`, `I32` and `I64` are rounded to the nearest f32.
    pub fn decode(self, blocks: &[u8], out: &mut [f32]) -> Result<(), FormatError> {
        let block_bytes = self.block_bytes();
        if !blocks.len().is_multiple_of(block_bytes) {
            return Err(FormatError::PartialBlock { format: self, found: blocks.len(), block_bytes });
        }
        let expected = blocks.len() / block_bytes * self.block_len();
        if out.len() != expected {
            return Err(FormatError::WrongValueCount { format: self, found: out.len(), expected });
        }
        simd::run_widest(Decode { format: self, blocks, out });
        Ok(())
    }

    /// Encodes whole blocks of values; `out` has room for exactly their bytes.
    ///
    /// Block formats minimise the squared error of each block. They have no NaN and no infinity: there, NaN
    /// becomes zero, and an infinity becomes the largest finite magnitude of its block with its sign, so that
    /// one bad value does not cost its neighbours theirs. Magnitudes beyond what a half-float scale can
    /// express saturate. `F32`, `F16` and `BF16` keep NaN and infinities; `F16` rounds what it cannot hold to
    /// infinity.
    pub fn encode(self, values: &[f32], out: &mut [u8]) -> Result<(), FormatError> {
        if !self.can_encode() {
            return Err(FormatError::CannotEncode { format: self });
        }
        let block_len = self.block_len();
        if !values.len().is_multiple_of(block_len) {
            return Err(FormatError::PartialBlockOfValues { format: self, found: values.len(), block_len });
        }
        let expected = values.len() / block_len * self.block_bytes();
        if out.len() != expected {
            return Err(FormatError::WrongByteCount { format: self, found: out.len(), expected });
        }
        simd::run_widest(Encode { format: self, values, out });
        Ok(())
    }
}

/// Blocks on their way to values; the lengths fit each other.
struct Decode<'a> {
    format: Format,
    blocks: &'a [u8],
    out: &'a mut [f32],
}

impl Work for Decode<'_> {
    #[inline(always)]
    fn run(self) {
        let Self { format, blocks, out } = self;
        match format {
            Format::F32 => for_each_chunk!(blocks, out, scalar::f32),
            Format::F16 => for_each_chunk!(blocks, out, scalar::f16),
            Format::BF16 => for_each_chunk!(blocks, out, scalar::bf16),
            Format::F64 => for_each_chunk!(blocks, out, scalar::f64),
            Format::I8 => for_each_chunk!(blocks, out, scalar::i8),
            Format::I16 => for_each_chunk!(blocks, out, scalar::i16),
            Format::I32 => for_each_chunk!(blocks, out, scalar::i32),
            Format::I64 => for_each_chunk!(blocks, out, scalar::i64),
            Format::Q4_0 => for_each_chunk!(blocks, out, blocks32::q4_0),
            Format::Q4_1 => for_each_chunk!(blocks, out, blocks32::q4_1),
            Format::Q5_0 => for_each_chunk!(blocks, out, blocks32::q5_0),
            Format::Q5_1 => for_each_chunk!(blocks, out, blocks32::q5_1),
            Format::Q8_0 => for_each_chunk!(blocks, out, blocks32::q8_0),
            Format::Q8_1 => for_each_chunk!(blocks, out, blocks32::q8_1),
            Format::Q2_K => for_each_chunk!(blocks, out, k_quants::q2_k),
            Format::Q3_K => for_each_chunk!(blocks, out, k_quants::q3_k),
            Format::Q4_K => for_each_chunk!(blocks, out, k_quants::q4_k),
            Format::Q5_K => for_each_chunk!(blocks, out, k_quants::q5_k),
            Format::Q6_K => for_each_chunk!(blocks, out, k_quants::q6_k),
            Format::Q8_K => for_each_chunk!(blocks, out, k_quants::q8_k),
            Format::IQ1_S => for_each_chunk!(blocks, out, iq::iq1_s),
            Format::IQ1_M => for_each_chunk!(blocks, out, iq::iq1_m),
            Format::IQ2_XXS => for_each_chunk!(blocks, out, iq::iq2_xxs),
            Format::IQ2_XS => for_each_chunk!(blocks, out, iq::iq2_xs),
            Format::IQ2_S => for_each_chunk!(blocks, out, iq::iq2_s),
            Format::IQ3_XXS => for_each_chunk!(blocks, out, iq::iq3_xxs),
            Format::IQ3_S => for_each_chunk!(blocks, out, iq::iq3_s),
            Format::IQ4_NL => for_each_chunk!(blocks, out, four_bit_tables::iq4_nl),
            Format::IQ4_XS => for_each_chunk!(blocks, out, four_bit_tables::iq4_xs),
            Format::MXFP4 => for_each_chunk!(blocks, out, four_bit_tables::mxfp4),
            Format::NVFP4 => for_each_chunk!(blocks, out, four_bit_tables::nvfp4),
            Format::TQ1_0 => for_each_chunk!(blocks, out, low_bit::tq1_0),
            Format::TQ2_0 => for_each_chunk!(blocks, out, low_bit::tq2_0),
            Format::Q1_0 => for_each_chunk!(blocks, out, low_bit::q1_0),
            Format::Q2_0 => for_each_chunk!(blocks, out, low_bit::q2_0),
        }
    }
}

/// Values on their way to blocks; the lengths fit each other, and the format is one that can be encoded.
struct Encode<'a> {
    format: Format,
    values: &'a [f32],
    out: &'a mut [u8],
}

impl Work for Encode<'_> {
    #[inline(always)]
    fn run(self) {
        let Self { format, values, out } = self;
        match format {
            Format::F32 => for_each_chunk!(values, out, encode::scalar::f32),
            Format::F16 => for_each_chunk!(values, out, encode::scalar::f16),
            Format::BF16 => for_each_chunk!(values, out, encode::scalar::bf16),
            Format::Q8_0 => for_each_chunk!(values, out, encode::q8_0::q8_0),
            Format::Q5_0 => for_each_chunk!(values, out, encode::q5_0::q5_0),
            Format::Q4_0 => for_each_chunk!(values, out, encode::q4_0::q4_0),
            Format::Q4_K => for_each_chunk!(values, out, encode::q4_k::q4_k),
            Format::Q6_K => for_each_chunk!(values, out, encode::q6_k::q6_k),
            _ => unreachable!("the caller asked for {format}, which cannot be encoded"),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormatName;

    /// Reads a format's name, in capitals or not.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().find(|format| format.name().eq_ignore_ascii_case(name));
        found.copied().ok_or_else(|| UnknownFormatName { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The portable instance and the one that runs here give the same bits, in both directions.
    #[test]
    fn instances_agree() {
        let noise = |i: u32| (i.wrapping_mul(2_654_435_761) ^ 0x5bd1_e995).wrapping_mul(0x9e37_79b1);
        for &format in Format::ALL {
            let blocks: Vec<u8> =
                (0..64 * format.block_bytes() as u32).map(|i| (noise(i) >> 24) as u8).collect();
            let [mut chosen, mut portable] = [(); 2].map(|()| vec![0.0; 64 * format.block_len()]);
            simd::run_widest(Decode { format, blocks: &blocks, out: &mut chosen });
            Decode { format, blocks: &blocks, out: &mut portable }.run();
            // Which NaN an operation makes of two depends on the order of its operands.
            let same = |a: f32, b: f32| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
            let all_same = chosen.iter().zip(&portable).all(|(&a, &b)| same(a, b));
            assert!(all_same, "decoding {format}");

            if format.can_encode() {
                let values: Vec<f32> =
                    (0..64 * format.block_len() as u32).map(|i| noise(i) as i32 as f32 * 1e-9).collect();
                let [mut chosen, mut portable] = [(); 2].map(|()| vec![0; 64 * format.block_bytes()]);
                simd::run_widest(Encode { format, values: &values, out: &mut chosen });
                Encode { format, values: &values, out: &mut portable }.run();
                assert_eq!(chosen, portable, "encoding {format}");
            }
        }
    }
}
