//! Blocks of 256 values in sub-blocks with scales of their own. The layouts are those of `rullama_gguf::format`.
//!
//! Loops read and write copies of a block's fields: these tell the optimiser that results are not stored where inputs are.

use super::{Packed, Unpacked, field, half};
use crate::kernels::Instructions;

/// A format of blocks of 256 values: its type, the bytes of a block, and what unpacks one.
macro_rules! blocks_of_256 {
    ($name:ident, $bytes:literal, $unpack:ident) => {
        pub(crate) struct $name;

        impl Packed for $name {
            const BYTES: usize = $bytes;

            #[inline(always)]
            fn unpack<I: Instructions>(blocks: &[u8], out: &mut Unpacked) {
                $unpack::<I>(field::<$bytes>(blocks, 0), out);
            }
        }
    };
}

pub(super) use blocks_of_256;

blocks_of_256!(Q2K, 84, q2_k);
blocks_of_256!(Q3K, 110, q3_k);
blocks_of_256!(Q4K, 144, q4_k);
blocks_of_256!(Q5K, 176, q5_k);
blocks_of_256!(Q6K, 210, q6_k);

/// Two bits; 16 pairs of four-bit scale and minimum.
#[inline(always)]
fn q2_k<I: Instructions>(block: &[u8; 84], out: &mut Unpacked) {
    let (d, dmin) = (half::<I>(block, 80), half::<I>(block, 82));
    let packed: [u8; 16] = *field(block, 0);
    for group in 0..16 {
        out.scales[group] = d * f32::from(packed[group] & 15);
        out.minimums[group] = dmin * f32::from(packed[group] >> 4);
    }
    two_bits(field(block, 16), &mut out.quants);
}

/// Three bits; 16 six-bit scales.
#[inline(always)]
fn q3_k<I: Instructions>(block: &[u8; 110], out: &mut Unpacked) {
    let packed: [u8; 12] = *field(block, 96);
    let d = half::<I>(block, 108);
    for group in 0..16 {
        let nibble = (packed[group % 8] >> (4 * (group / 8))) & 15;
        let top = (packed[8 + group % 4] >> (2 * (group / 4))) & 3;
        let scale = d * f32::from((nibble | (top << 4)) as i8 - 32);
        (out.scales[group], out.minimums[group]) = (scale, 4.0 * scale);
    }
    two_bits(field(block, 32), &mut out.quants);
    add_bits(*field(block, 0), 2, &mut out.quants);
}

/// Four bits; eight pairs of six-bit scale and minimum.
#[inline(always)]
fn q4_k<I: Instructions>(block: &[u8; 144], out: &mut Unpacked) {
    scales_and_minimums::<I>(block, out);
    nibbles(field(block, 16), &mut out.quants);
}

/// As [`q4_k`], with a fifth bit for each value between the scales and the nibbles.
#[inline(always)]
fn q5_k<I: Instructions>(block: &[u8; 176], out: &mut Unpacked) {
    scales_and_minimums::<I>(block, out);
    nibbles(field(block, 48), &mut out.quants);
    add_bits(*field(block, 16), 4, &mut out.quants);
}

/// Six bits; 16 signed scales.
#[inline(always)]
fn q6_k<I: Instructions>(block: &[u8; 210], out: &mut Unpacked) {
    let d = half::<I>(block, 208);
    let packed: [u8; 16] = *field(block, 192);
    let mut scales = [0.0; 16];
    for group in 0..16 {
        scales[group] = d * f32::from(packed[group] as i8);
    }
    out.scales = scales;
    for group in 0..16 {
        out.minimums[group] = 32.0 * scales[group];
    }
    // Each half of the block is four runs of 32: runs 0 and 1 in the low nibbles of the half's two stretches of 32 bytes,
    // runs 2 and 3 in their high nibbles; all four share one stretch of high bit pairs.
    for (half, quants) in out.quants.as_chunks_mut::<128>().0.iter_mut().enumerate() {
        let first: [u8; 32] = *field(block, 64 * half);
        let second: [u8; 32] = *field(block, 64 * half + 32);
        let high: [u8; 32] = *field(block, 128 + 32 * half);
        let mut runs = [[0; 32]; 4];
        for i in 0..32 {
            runs[0][i] = (first[i] & 15) | ((high[i] & 3) << 4);
            runs[1][i] = (second[i] & 15) | ((high[i] & 12) << 2);
            runs[2][i] = (first[i] >> 4) | (high[i] & 48);
            runs[3][i] = (second[i] >> 4) | ((high[i] >> 2) & 48);
        }
        quants.copy_from_slice(runs.as_flattened());
    }
}

/// Adds bit `run` of each byte to the values of that run of 32, as their bit `to`.
#[inline(always)]
fn add_bits(bits: [u8; 32], to: u32, quants: &mut [u8; 256]) {
    for (run, quants) in quants.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let mut sums = *quants;
        for i in 0..32 {
            sums[i] |= ((bits[i] >> run) & 1) << to;
        }
        *quants = sums;
    }
}

/// Each stretch of 32 bytes has one run of 32 values in its low nibbles and the next in its high nibbles.
#[inline(always)]
fn nibbles(packed: &[u8; 128], quants: &mut [u8; 256]) {
    for (packed, quants) in packed.as_chunks::<32>().0.iter().zip(quants.as_chunks_mut::<64>().0) {
        let packed: [u8; 32] = *packed;
        let mut runs = [[0; 32]; 2];
        for i in 0..32 {
            (runs[0][i], runs[1][i]) = (packed[i] & 15, packed[i] >> 4);
        }
        quants.copy_from_slice(runs.as_flattened());
    }
}

/// Each stretch of 32 bytes has four runs of 32 values, two bits of each byte.
#[inline(always)]
fn two_bits(packed: &[u8; 64], quants: &mut [u8; 256]) {
    for (packed, quants) in packed.as_chunks::<32>().0.iter().zip(quants.as_chunks_mut::<128>().0) {
        let packed: [u8; 32] = *packed;
        for (run, quants) in quants.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let mut values = [0; 32];
            for i in 0..32 {
                values[i] = (packed[i] >> (2 * run)) & 3;
            }
            *quants = values;
        }
    }
}

/// The scales and minimums of Q4_K and Q5_K, six bits each.
///
/// The first four of each are whole in the low bits of bytes 0 to 7; the others have their low nibbles in bytes 8 to 11
/// and their top two bits above the first four.
#[inline(always)]
fn scales_and_minimums<I: Instructions>(block: &[u8], out: &mut Unpacked) {
    let (d, dmin) = (half::<I>(block, 0), half::<I>(block, 2));
    let words: &[u8; 12] = field(block, 4);
    let word = |at: usize| u32::from_le_bytes(*field(words, at));
    let (first, second, rest) = (word(0), word(4), word(8));
    // Four six-bit numbers at a time, one in each byte of a word.
    let scale_words = [first & 0x3f3f_3f3f, (rest & 0x0f0f_0f0f) | ((first >> 2) & 0x3030_3030)];
    let minimum_words = [second & 0x3f3f_3f3f, ((rest >> 4) & 0x0f0f_0f0f) | ((second >> 2) & 0x3030_3030)];
    let bytes = |[low, high]: [u32; 2]| (u64::from(low) | (u64::from(high) << 32)).to_le_bytes();
    let (scales, minimums) = (bytes(scale_words), bytes(minimum_words));
    for i in 0..8 {
        out.scales[i] = d * f32::from(scales[i]);
    }
    for i in 0..8 {
        out.minimums[i] = dmin * f32::from(minimums[i]);
    }
}
