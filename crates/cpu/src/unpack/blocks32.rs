//! Blocks of 32 values with one scale, and sometimes one offset. The layouts are those of `rullama_gguf::format`.

use super::{Packed, Unpacked, field, half};
use crate::kernels::Instructions;

/// A format of such blocks: its type, the bytes of a block, and what the quants, scale and minimum of one are.
///
/// This is a macro because a function passed as a value is called through a shim, which would keep `#[inline(always)]` and
/// with it the caller's instructions from reaching it.
macro_rules! blocks_of_32 {
    ($(#[$doc:meta])* $name:ident, $bytes:literal, |$block:ident| $unpack:expr) => {
        $(#[$doc])*
        pub(crate) struct $name;

        impl Packed for $name {
            const BYTES: usize = 8 * $bytes;

            #[inline(always)]
            fn unpack<I: Instructions>(blocks: &[u8], out: &mut Unpacked) {
                if blocks.len() < Self::BYTES {
                    *out = Unpacked::ZERO;
                }
                let quants = out.quants.as_chunks_mut::<32>().0.iter_mut();
                let groups = quants.zip(&mut out.scales).zip(&mut out.minimums);
                for ($block, ((quants, scale), minimum)) in blocks.as_chunks::<$bytes>().0.iter().zip(groups) {
                    (*quants, *scale, *minimum) = $unpack;
                }
            }
        }
    };
}

pub(super) use blocks_of_32;

blocks_of_32!(Q4_0, 18, |block| (nibbles(field(block, 2)), half::<I>(block, 0), 8.0 * half::<I>(block, 0)));
blocks_of_32!(Q4_1, 20, |block| (nibbles(field(block, 4)), half::<I>(block, 0), -half::<I>(block, 2)));
blocks_of_32!(Q5_0, 22, |block| {
    let quants = with_fifth_bits(nibbles(field(block, 6)), *field(block, 2));
    (quants, half::<I>(block, 0), 16.0 * half::<I>(block, 0))
});
blocks_of_32!(Q5_1, 24, |block| {
    let quants = with_fifth_bits(nibbles(field(block, 8)), *field(block, 4));
    (quants, half::<I>(block, 0), -half::<I>(block, 2))
});
blocks_of_32!(
    /// Signed bytes.
    Q8_0, 34, |block| (*field(block, 2), half::<I>(block, 0), 0.0)
);

/// Low nibbles are the first 16 values, high nibbles the last 16.
#[inline(always)]
fn nibbles(packed: &[u8; 16]) -> [u8; 32] {
    let mut values = [0; 32];
    for i in 0..16 {
        (values[i], values[16 + i]) = (packed[i] & 15, packed[i] >> 4);
    }
    values
}

/// Adds bit `i` of the mask to value `i`, as its fifth bit.
#[inline(always)]
fn with_fifth_bits(mut values: [u8; 32], mask: [u8; 4]) -> [u8; 32] {
    const BITS: [u8; 32] = {
        let mut bits = [0; 32];
        let mut i = 0;
        while i < 32 {
            bits[i] = 1 << (i % 8);
            i += 1;
        }
        bits
    };
    let mut spread = [[0; 8]; 4];
    for byte in 0..4 {
        spread[byte] = [mask[byte]; 8];
    }
    let spread = spread.as_flattened();
    for i in 0..32 {
        values[i] |= if spread[i] & BITS[i] == 0 { 0 } else { 16 };
    }
    values
}
