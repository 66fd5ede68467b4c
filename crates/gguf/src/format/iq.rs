//! The IQ formats of one to three bits: 256 values as indices into codebooks, with signs and scales apart.
//!
//! All of them divide the block into eight groups of 32 values, and a group into four runs of 8. A run is one
//! entry of an eight-value book or two entries of a four-value book.

use super::float16::half_to_f32;
use super::grids::{IQ1_S, IQ2_S, IQ2_XS, IQ2_XXS, IQ3_S, IQ3_XXS};
use super::layout::{bytes, half, part, part_mut, words};

/// Scale; for each group four index bytes, then four seven-bit signs and a four-bit scale in one word.
#[inline(always)]
pub(super) fn iq2_xxs(block: &[u8; 66], out: &mut [f32; 256]) {
    let d = half::<0, _>(block);
    let groups = bytes::<2, 64, _>(block).as_chunks::<8>().0;
    for (&[i0, i1, i2, i3, s0, s1, s2, s3], out) in groups.iter().zip(out.as_chunks_mut::<32>().0) {
        let signs = u32::from_le_bytes([s0, s1, s2, s3]);
        let scale = d * (0.5 + (signs >> 28) as f32) * 0.25;
        for (run, index) in [i0, i1, i2, i3].into_iter().enumerate() {
            let levels = two_bit_digits(IQ2_XXS[usize::from(index)]).map(iq2_level);
            write_signed(scale, &levels, even_signs(signs >> (7 * run)), part_mut(out, 8 * run));
        }
    }
}

/// Scale; for each group four words of nine index bits and seven sign bits; two four-bit scales a group.
#[inline(always)]
pub(super) fn iq2_xs(block: &[u8; 74], out: &mut [f32; 256]) {
    let d = half::<0, _>(block);
    let runs = words::<2, 32, _>(block);
    let scales = bytes::<66, 8, _>(block);
    for (run, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let scale = iq2_scale(d, scales, run);
        let levels = two_bit_digits(IQ2_XS[usize::from(runs[run] & 511)]).map(iq2_level);
        write_signed(scale, &levels, even_signs(u32::from(runs[run] >> 9)), out);
    }
}

/// Scale, low index bytes, sign bytes, two high index bits for each run, two four-bit scales a group.
#[inline(always)]
pub(super) fn iq2_s(block: &[u8; 82], out: &mut [f32; 256]) {
    let d = half::<0, _>(block);
    let low = bytes::<2, 32, _>(block);
    let signs = bytes::<34, 32, _>(block);
    let high = bytes::<66, 8, _>(block);
    let scales = bytes::<74, 8, _>(block);
    for (run, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let scale = iq2_scale(d, scales, run);
        let index = usize::from(low[run]) | usize::from((high[run / 4] >> (2 * (run % 4))) & 3) << 8;
        let levels = two_bit_digits(IQ2_S[index]).map(iq2_level);
        write_signed(scale, &levels, signs[run], out);
    }
}

/// Scale, index bytes of four-value entries, then for each group a word of signs and scale as in IQ2_XXS.
#[inline(always)]
pub(super) fn iq3_xxs(block: &[u8; 98], out: &mut [f32; 256]) {
    let d = half::<0, _>(block);
    let indices = bytes::<2, 64, _>(block);
    let signs = bytes::<66, 32, _>(block).as_chunks::<4>().0;
    for (group, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let signs = u32::from_le_bytes(signs[group]);
        let scale = d * (0.5 + (signs >> 28) as f32) * 0.5;
        for run in 0..4 {
            let [first, second] = *part(indices, 8 * group + 2 * run);
            let entries = [IQ3_XXS[usize::from(first)], IQ3_XXS[usize::from(second)]];
            // The last level is the odd one out: 62 where the even spacing would give 60.
            let levels = three_bit_digits(entries).map(|q| (4 + 8 * q + 2 * (q / 7)) as f32);
            write_signed(scale, &levels, even_signs(signs >> (7 * run)), part_mut(out, 8 * run));
        }
    }
}

/// Scale, low index bytes of four-value entries, a ninth index bit each, sign bytes, a four-bit scale for each
/// group.
#[inline(always)]
pub(super) fn iq3_s(block: &[u8; 110], out: &mut [f32; 256]) {
    let d = half::<0, _>(block);
    let low = bytes::<2, 64, _>(block);
    let high = bytes::<66, 8, _>(block);
    let signs = bytes::<74, 32, _>(block);
    let scales = bytes::<106, 4, _>(block);
    for (run, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let group = run / 4;
        let scale = d * f32::from(1 + 2 * nibble(scales[group / 2], group % 2));
        let ninth = usize::from(high[group]) >> (2 * (run % 4));
        let [first, second] = *part(low, 2 * run);
        let entries = [
            IQ3_S[usize::from(first) | (ninth & 1) << 8],
            IQ3_S[usize::from(second) | (ninth >> 1 & 1) << 8],
        ];
        let levels = three_bit_digits(entries).map(|q| (1 + 2 * q) as f32);
        write_signed(scale, &levels, signs[run], out);
    }
}

/// Scale, low index bytes, and for each group a word of high index bits, a three-bit scale and the sign of an
/// offset.
#[inline(always)]
pub(super) fn iq1_s(block: &[u8; 50], out: &mut [f32; 256]) {
    let d = half::<0, _>(block);
    let low = bytes::<2, 32, _>(block);
    let high = words::<34, 8, _>(block);
    for (run, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let word = high[run / 4];
        let scale = d * f32::from(2 * ((word >> 12) & 7) + 1);
        let index = usize::from(low[run]) | usize::from((word >> (3 * (run % 4))) & 7) << 8;
        write_offset(scale, index, word & 0x8000 != 0, out);
    }
}

/// Low index bytes, a nibble of high index bits and offset sign for each run, three-bit scales for each pair
/// of runs. The half float that scales those is spread over the top nibbles of the scale words.
#[inline(always)]
pub(super) fn iq1_m(block: &[u8; 56], out: &mut [f32; 256]) {
    let low = bytes::<0, 32, _>(block);
    let high = bytes::<32, 16, _>(block);
    let scales = words::<48, 4, _>(block);
    let d = half_to_f32(
        (scales[0] >> 12) | ((scales[1] >> 8) & 0xf0) | ((scales[2] >> 4) & 0xf00) | (scales[3] & 0xf000),
    );
    for (run, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let pair = run / 2;
        let scale = d * f32::from(2 * ((scales[pair / 4] >> (3 * (pair % 4))) & 7) + 1);
        let high = nibble(high[pair], run % 2);
        let index = usize::from(low[run]) | usize::from(high & 7) << 8;
        write_offset(scale, index, high & 8 != 0, out);
    }
}

/// The low nibble of a byte for `which` 0, the high one for 1.
#[inline(always)]
fn nibble(byte: u8, which: usize) -> u8 {
    (byte >> (4 * which)) & 15
}

/// The scale of a run in IQ2_XS and IQ2_S: each nibble serves two runs.
#[inline(always)]
fn iq2_scale(d: f32, scales: &[u8; 8], run: usize) -> f32 {
    d * (0.5 + f32::from(nibble(scales[run / 4], run / 2 % 2))) * 0.25
}

/// The levels of the IQ2 books: 8, 25, 43.
#[inline(always)]
fn iq2_level(q: u32) -> f32 {
    (8 + 17 * q + q / 2) as f32
}

#[inline(always)]
fn two_bit_digits(entry: u16) -> [u32; 8] {
    std::array::from_fn(|i| u32::from(entry) >> (2 * i) & 3)
}

#[inline(always)]
fn three_bit_digits([first, second]: [u16; 2]) -> [u32; 8] {
    let both = u32::from(first) | u32::from(second) << 12;
    std::array::from_fn(|i| both >> (3 * i) & 7)
}

/// Seven stored signs; the eighth makes the number of minus signs even.
#[inline(always)]
fn even_signs(bits: u32) -> u8 {
    let seven = bits as u8 & 127;
    seven | (seven.count_ones() as u8 & 1) << 7
}

/// `y = scale · level`, negated where the sign bit is set.
#[inline(always)]
fn write_signed(scale: f32, levels: &[f32; 8], signs: u8, out: &mut [f32; 8]) {
    for i in 0..8 {
        // The sign goes straight into the float's sign bit.
        let minus = (u32::from(signs) << (31 - i)) & 0x8000_0000;
        out[i] = f32::from_bits((scale * levels[i]).to_bits() ^ minus);
    }
}

/// `y = scale · (level ± 1/8)` with the levels −1, 0, 1.
#[inline(always)]
fn write_offset(scale: f32, index: usize, minus: bool, out: &mut [f32; 8]) {
    let offset = if minus { -0.125 } else { 0.125 };
    let digits = two_bit_digits(IQ1_S[index]);
    for (out, digit) in out.iter_mut().zip(digits) {
        *out = scale * (digit as f32 - 1.0 + offset);
    }
}
