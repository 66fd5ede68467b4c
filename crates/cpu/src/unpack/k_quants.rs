//! Blocks of 256 values in sub-blocks with scales of their own. The layouts are those of `rullama_gguf::format`.

use super::{Block, field, half};

type Block256<'a> = Block<'a, 256, 16>;

/// Two bits; 16 pairs of four-bit scale and minimum.
#[inline(always)]
pub(super) fn q2_k(block: &[u8; 84], out: Block256<'_>) {
    let (d, dmin) = (half(block, 80), half(block, 82));
    for (group, &packed) in field::<16>(block, 0).iter().enumerate() {
        out.scales[group] = d * f32::from(packed & 15);
        out.minimums[group] = dmin * f32::from(packed >> 4);
    }
    two_bits(field(block, 16), out.quants);
}

/// Three bits; 16 six-bit scales.
#[inline(always)]
pub(super) fn q3_k(block: &[u8; 110], out: Block256<'_>) {
    let packed: &[u8; 12] = field(block, 96);
    let d = half(block, 108);
    for group in 0..16 {
        let nibble = (packed[group % 8] >> (4 * (group / 8))) & 15;
        let top = (packed[8 + group % 4] >> (2 * (group / 4))) & 3;
        let scale = d * f32::from((nibble | (top << 4)) as i8 - 32);
        (out.scales[group], out.minimums[group]) = (scale, 4.0 * scale);
    }
    two_bits(field(block, 32), out.quants);
    let third: &[u8; 32] = field(block, 0);
    for (run, quants) in out.quants.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        for (quant, bits) in quants.iter_mut().zip(third) {
            *quant |= ((bits >> run) & 1) << 2;
        }
    }
}

/// Four bits; eight pairs of six-bit scale and minimum.
#[inline(always)]
pub(super) fn q4_k(block: &[u8; 144], out: Block256<'_>) {
    scales_and_minimums(block, out.scales, out.minimums);
    nibbles(field(block, 16), out.quants);
}

/// As [`q4_k`], with a fifth bit for each value between the scales and the nibbles.
#[inline(always)]
pub(super) fn q5_k(block: &[u8; 176], out: Block256<'_>) {
    scales_and_minimums(block, out.scales, out.minimums);
    nibbles(field(block, 48), out.quants);
    let fifth: &[u8; 32] = field(block, 16);
    for (run, quants) in out.quants.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        for (quant, bits) in quants.iter_mut().zip(fifth) {
            *quant |= ((bits >> run) & 1) << 4;
        }
    }
}

/// Six bits; 16 signed scales.
#[inline(always)]
pub(super) fn q6_k(block: &[u8; 210], out: Block256<'_>) {
    let d = half(block, 208);
    for (group, &scale) in field::<16>(block, 192).iter().enumerate() {
        let scale = d * f32::from(scale as i8);
        (out.scales[group], out.minimums[group]) = (scale, 32.0 * scale);
    }
    // Each half of the block is four runs of 32: runs 0 and 1 in the low nibbles of the half's two stretches of 32 bytes,
    // runs 2 and 3 in their high nibbles; all four share one stretch of high bit pairs.
    for (half, quants) in out.quants.as_chunks_mut::<128>().0.iter_mut().enumerate() {
        let low: &[u8; 64] = field(block, 64 * half);
        let high: &[u8; 32] = field(block, 128 + 32 * half);
        let (first, second) = quants.split_at_mut(64);
        for i in 0..64 {
            (first[i], second[i]) = (low[i] & 15, low[i] >> 4);
        }
        for i in 0..32 {
            first[i] |= (high[i] & 3) << 4;
            first[32 + i] |= ((high[i] >> 2) & 3) << 4;
            second[i] |= ((high[i] >> 4) & 3) << 4;
            second[32 + i] |= (high[i] >> 6) << 4;
        }
    }
}

/// Each stretch of 32 bytes has one run of 32 values in its low nibbles and the next in its high nibbles.
#[inline(always)]
fn nibbles(packed: &[u8; 128], quants: &mut [u8; 256]) {
    for (packed, quants) in packed.as_chunks::<32>().0.iter().zip(quants.as_chunks_mut::<64>().0) {
        let (low, high) = quants.split_at_mut(32);
        for ((low, high), packed) in low.iter_mut().zip(high).zip(packed) {
            (*low, *high) = (packed & 15, packed >> 4);
        }
    }
}

/// Each stretch of 32 bytes has four runs of 32 values, two bits of each byte.
#[inline(always)]
fn two_bits(packed: &[u8; 64], quants: &mut [u8; 256]) {
    for (packed, quants) in packed.as_chunks::<32>().0.iter().zip(quants.as_chunks_mut::<128>().0) {
        for (run, quants) in quants.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            for (quant, packed) in quants.iter_mut().zip(packed) {
                *quant = (packed >> (2 * run)) & 3;
            }
        }
    }
}

/// The scales and minimums of Q4_K and Q5_K, six bits each, of sub-blocks of two groups.
///
/// The first four of each are whole in the low bits of bytes 0 to 7; the others have their low nibbles in bytes 8 to 11
/// and their top two bits above the first four.
#[inline(always)]
fn scales_and_minimums(block: &[u8], scales: &mut [f32; 16], minimums: &mut [f32; 16]) {
    let (d, dmin) = (half(block, 0), half(block, 2));
    let words: &[u8; 12] = field(block, 4);
    let word = |at: usize| u32::from_le_bytes(*field(words, at));
    let (first, second, rest) = (word(0), word(4), word(8));
    // Four six-bit numbers at a time, one in each byte of a word.
    let scale_words = [first & 0x3f3f_3f3f, (rest & 0x0f0f_0f0f) | ((first >> 2) & 0x3030_3030)];
    let minimum_words = [second & 0x3f3f_3f3f, ((rest >> 4) & 0x0f0f_0f0f) | ((second >> 2) & 0x3030_3030)];
    for half in 0..2 {
        let (s, m) = (scale_words[half].to_le_bytes(), minimum_words[half].to_le_bytes());
        for i in 0..4 {
            let at = 8 * half + 2 * i;
            let (scale, minimum) = (d * f32::from(s[i]), dmin * f32::from(m[i]));
            (scales[at], scales[at + 1]) = (scale, scale);
            (minimums[at], minimums[at + 1]) = (minimum, minimum);
        }
    }
}
