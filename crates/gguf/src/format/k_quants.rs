//! The K formats: 256 values in sub-blocks of 16 or 32, whose scales are themselves quantised.

use super::blocks32::signed_bytes;
use super::layout::{bytes, half, part, part_mut};

/// 16 pairs of four-bit scale and minimum, two-bit quants, two half floats that scale those.
#[inline(always)]
pub(super) fn q2_k(block: &[u8; 84], out: &mut [f32; 256]) {
    let scales = bytes::<0, 16, _>(block);
    let quants = bytes::<16, 64, _>(block);
    let (d, dmin) = (half::<80, _>(block), half::<82, _>(block));
    for (sub_block, &pair) in scales.iter().enumerate() {
        let scale = d * f32::from(pair & 15);
        let min = dmin * f32::from(pair >> 4);
        let (at, shift) = two_bit_place(sub_block);
        let quants: [u8; 16] = *part(quants, at);
        for (out, q) in part_mut::<16, _>(out, 16 * sub_block).iter_mut().zip(quants) {
            *out = scale * f32::from((q >> shift) & 3) - min;
        }
    }
}

/// The third bit of each quant (inverted), two-bit quants, 16 six-bit scales, one half float.
#[inline(always)]
pub(super) fn q3_k(block: &[u8; 110], out: &mut [f32; 256]) {
    let high = bytes::<0, 32, _>(block);
    let quants = bytes::<32, 64, _>(block);
    let scales = six_bit_scales(bytes::<96, 12, _>(block));
    let d = half::<108, _>(block);
    for (sub_block, scale) in scales.into_iter().enumerate() {
        let scale = d * f32::from(scale as i8 - 32);
        let (at, shift) = two_bit_place(sub_block);
        let quants: [u8; 16] = *part(quants, at);
        let high: [u8; 16] = *part(high, 16 * (sub_block % 2));
        let high_shift = sub_block / 2;
        for (i, out) in part_mut::<16, _>(out, 16 * sub_block).iter_mut().enumerate() {
            let q = ((quants[i] >> shift) & 3) | (((high[i] >> high_shift) & 1) << 2);
            *out = scale * f32::from(q as i8 - 4);
        }
    }
}

/// Two half floats, eight six-bit pairs of scale and minimum, four-bit quants.
#[inline(always)]
pub(super) fn q4_k(block: &[u8; 144], out: &mut [f32; 256]) {
    let (d, dmin) = (half::<0, _>(block), half::<2, _>(block));
    let (scales, mins) = scales_and_mins(bytes::<4, 12, _>(block));
    let quants = bytes::<16, 128, _>(block);
    for pair in 0..4 {
        let quants: [u8; 32] = *part(quants, 32 * pair);
        let [low, high] =
            [2 * pair, 2 * pair + 1].map(|k| (d * f32::from(scales[k]), dmin * f32::from(mins[k])));
        for (out, q) in part_mut::<32, _>(out, 64 * pair).iter_mut().zip(quants) {
            *out = low.0 * f32::from(q & 15) - low.1;
        }
        for (out, q) in part_mut::<32, _>(out, 64 * pair + 32).iter_mut().zip(quants) {
            *out = high.0 * f32::from(q >> 4) - high.1;
        }
    }
}

/// As [`q4_k`], with a fifth bit for each quant between the scales and the nibbles.
#[inline(always)]
pub(super) fn q5_k(block: &[u8; 176], out: &mut [f32; 256]) {
    let (d, dmin) = (half::<0, _>(block), half::<2, _>(block));
    let (scales, mins) = scales_and_mins(bytes::<4, 12, _>(block));
    let fifth: [u8; 32] = *bytes::<16, 32, _>(block);
    let quants = bytes::<48, 128, _>(block);
    for pair in 0..4 {
        let quants: [u8; 32] = *part(quants, 32 * pair);
        let [low, high] =
            [2 * pair, 2 * pair + 1].map(|k| (d * f32::from(scales[k]), dmin * f32::from(mins[k])));
        for (i, out) in part_mut::<32, _>(out, 64 * pair).iter_mut().enumerate() {
            let q = (quants[i] & 15) | (((fifth[i] >> (2 * pair)) & 1) << 4);
            *out = low.0 * f32::from(q) - low.1;
        }
        for (i, out) in part_mut::<32, _>(out, 64 * pair + 32).iter_mut().enumerate() {
            let q = (quants[i] >> 4) | (((fifth[i] >> (2 * pair + 1)) & 1) << 4);
            *out = high.0 * f32::from(q) - high.1;
        }
    }
}

/// Low nibbles, high bit pairs, 16 signed scales, one half float.
#[inline(always)]
pub(super) fn q6_k(block: &[u8; 210], out: &mut [f32; 256]) {
    let low = bytes::<0, 128, _>(block);
    let high = bytes::<128, 64, _>(block);
    let scales = bytes::<192, 16, _>(block);
    let d = half::<208, _>(block);
    for (sub_block, &scale) in scales.iter().enumerate() {
        let scale = d * f32::from(scale as i8);
        // Each half of the block is four rows of 32: rows 0 and 1 in the low nibbles of the half's two runs
        // of 32 bytes, rows 2 and 3 in their high nibbles; all four share one run of high bit pairs.
        let (half, row, column) = (sub_block / 8, (sub_block / 2) % 4, 16 * (sub_block % 2));
        let low: [u8; 16] = *part(low, 64 * half + 32 * (row % 2) + column);
        let high: [u8; 16] = *part(high, 32 * half + column);
        let nibble = 4 * (row / 2);
        let pair = 2 * row;
        for (i, out) in part_mut::<16, _>(out, 16 * sub_block).iter_mut().enumerate() {
            let q = ((low[i] >> nibble) & 15) | (((high[i] >> pair) & 3) << 4);
            *out = scale * f32::from(q as i8 - 32);
        }
    }
}

/// One f32, 256 signed bytes, and the sums of each 16 of them, which serve dot products.
#[inline(always)]
pub(super) fn q8_k(block: &[u8; 292], out: &mut [f32; 256]) {
    signed_bytes(f32::from_le_bytes(*bytes::<0, 4, _>(block)), bytes::<4, 256, _>(block), out);
}

/// Where the two-bit quants of a sub-block of 16 start, and by how much to shift them down.
///
/// Each half of the block has 32 bytes of quants; its four pairs of sub-blocks take two bits of each byte.
#[inline(always)]
fn two_bit_place(sub_block: usize) -> (usize, usize) {
    let (half, pair, side) = (sub_block / 8, (sub_block / 2) % 4, sub_block % 2);
    (32 * half + 16 * side, 2 * pair)
}

/// The eight scales and eight minimums of Q4_K and Q5_K, six bits each.
///
/// The first four of each are whole in the low bits of bytes 0 to 7; the others have their low nibbles in
/// bytes 8 to 11 and their top two bits above the first four.
#[inline(always)]
fn scales_and_mins(packed: &[u8; 12]) -> ([u8; 8], [u8; 8]) {
    let b = packed;
    let scales =
        std::array::from_fn(|k| if k < 4 { b[k] & 63 } else { (b[k + 4] & 15) | ((b[k - 4] >> 6) << 4) });
    let mins =
        std::array::from_fn(|k| if k < 4 { b[k + 4] & 63 } else { (b[k + 4] >> 4) | ((b[k] >> 6) << 4) });
    (scales, mins)
}

/// The 16 scales of Q3_K, six bits each, biased by 32.
///
/// Nibbles in bytes 0 to 7 (low ones first), and the top two bits, four to a byte, in bytes 8 to 11.
#[inline(always)]
fn six_bit_scales(packed: &[u8; 12]) -> [u8; 16] {
    std::array::from_fn(|k| {
        let nibble = (packed[k % 8] >> (4 * (k / 8))) & 15;
        let top = (packed[8 + k % 4] >> (2 * (k / 4))) & 3;
        nibble | (top << 4)
    })
}
