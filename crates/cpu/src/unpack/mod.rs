//! Blocks of quantised weights, unpacked to one byte for each value.
//!
//! Every format becomes the same three arrays: quants, and a scale and a minimum for each group of 32 or 16 values, such
//! that a value is `scale · quant − minimum`. One kernel then serves all formats. A format is a type, so that its unpacking
//! becomes part of the kernel that is compiled for it, and an unpacked block is in registers or in the first cache.

mod blocks32;
mod k_quants;
mod tables;

use rullama_gguf::Format;

use crate::{activations::BLOCK, kernels::Instructions};
pub(crate) use {blocks32::*, k_quants::*, tables::*};

/// 256 values. Formats with groups of 32 use the first half of the scales and minimums.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub(crate) struct Unpacked {
    /// Values from 0 to 127, or signed bytes.
    pub(crate) quants: [u8; BLOCK],
    pub(crate) scales: [f32; 16],
    /// Nothing reads these of formats with signed bytes, which have none.
    pub(crate) minimums: [f32; 16],
}

impl Unpacked {
    pub(crate) const ZERO: Self = Self { quants: [0; BLOCK], scales: [0.0; 16], minimums: [0.0; 16] };
}

/// How a format is unpacked.
pub(crate) trait Packed {
    /// Bytes of 256 values.
    const BYTES: usize;

    /// Unpacks 256 values, or fewer at the end of a row, to which zeros are added.
    fn unpack<I: Instructions>(blocks: &[u8], out: &mut Unpacked);
}

/// A format with signed bytes as one with unsigned bytes, for instructions that multiply only these with signed ones.
pub(crate) struct Raised<P>(std::marker::PhantomData<P>);

impl<P: Packed> Packed for Raised<P> {
    const BYTES: usize = P::BYTES;

    #[inline(always)]
    fn unpack<I: Instructions>(blocks: &[u8], out: &mut Unpacked) {
        P::unpack::<I>(blocks, out);
        for quant in &mut out.quants {
            *quant ^= 0x80;
        }
        for group in 0..16 {
            out.minimums[group] = 128.0 * out.scales[group];
        }
    }
}

/// Whether products with this format use activations of eight bits.
pub(crate) fn is_integer(format: Format) -> bool {
    use Format::*;
    matches!(format, Q4_0 | Q4_1 | Q5_0 | Q5_1 | Q8_0 | Q2_K | Q3_K | Q4_K | Q5_K | Q6_K | IQ4_NL | IQ4_XS)
}

/// Calls a function for a set of instructions with the type of a format, the number of groups in 256 of its values, and
/// whether its bytes are signed.
macro_rules! by_format {
    ($set:ty, $format:expr, $call:ident $arguments:tt) => {{
        use $crate::unpack::*;
        use Format as F;
        match $format {
            F::Q4_0 => $call::<$set, Q4_0, 8, false> $arguments,
            F::Q4_1 => $call::<$set, Q4_1, 8, false> $arguments,
            F::Q5_0 => $call::<$set, Q5_0, 8, false> $arguments,
            F::Q5_1 => $call::<$set, Q5_1, 8, false> $arguments,
            F::Q2_K => $call::<$set, Q2K, 16, false> $arguments,
            F::Q3_K => $call::<$set, Q3K, 16, false> $arguments,
            F::Q4_K => $call::<$set, Q4K, 8, false> $arguments,
            F::Q5_K => $call::<$set, Q5K, 8, false> $arguments,
            F::Q6_K => $call::<$set, Q6K, 16, false> $arguments,
            F::Q8_0 if <$set>::RAISES => $call::<$set, Raised<Q8_0>, 8, false> $arguments,
            F::IQ4_NL if <$set>::RAISES => $call::<$set, Raised<Iq4Nl>, 8, false> $arguments,
            F::IQ4_XS if <$set>::RAISES => $call::<$set, Raised<Iq4Xs>, 8, false> $arguments,
            F::Q8_0 => $call::<$set, Q8_0, 8, true> $arguments,
            F::IQ4_NL => $call::<$set, Iq4Nl, 8, true> $arguments,
            F::IQ4_XS => $call::<$set, Iq4Xs, 8, true> $arguments,
            format => unreachable!("{format} is multiplied as floats"),
        }
    }};
}

pub(crate) use by_format;

/// `LEN` bytes of a block from `at` on.
#[inline(always)]
fn field<const LEN: usize>(block: &[u8], at: usize) -> &[u8; LEN] {
    block[at..].first_chunk().expect("the field lies inside the block")
}

/// The half float at `at`.
#[inline(always)]
fn half<I: Instructions>(block: &[u8], at: usize) -> f32 {
    I::half(u16::from_le_bytes(*field(block, at)))
}
