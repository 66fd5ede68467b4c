//! The K formats: blocks of 256 values in groups of 16 or 32, whose scales are themselves quantised.

use super::bits::{
    NIBBLES, ONES, PAIRS, half_word_pair, join_nibbles, nibbles, top_bits, unpack2x16float, unpack4x_i8,
    unpack4x_u8, words,
};
use super::layout::{Layout, Planes, PlanesMut};

/// Bit pairs; five words for each block with two half floats and 16 pairs of nibbles.
pub(super) struct Q2K;

impl Layout for Q2K {
    const GROUP: usize = 16;
    const HAS_OFFSET: bool = true;

    fn plane_words(blocks: u32) -> Option<[u32; 3]> {
        Some([16 * blocks, 5 * blocks, 0])
    }

    fn pack_row(blocks: &[u8], [quants, scales, _]: PlanesMut<'_>) {
        let planes = quants.as_chunks_mut::<16>().0.iter_mut().zip(scales.as_chunks_mut().0);
        for (block, (quants, scales)) in blocks.as_chunks::<84>().0.iter().zip(planes) {
            let pairs = words::<16, 16, _>(block);
            for (group, quants) in quants.iter_mut().enumerate() {
                *quants = (0..4).fold(0, |word, w| word | (two_bits(&pairs, group, w) << (2 * w)));
            }
            let [sizes] = words::<80, 1, _>(block);
            let [a, b, c, d] = words::<0, 4, _>(block);
            *scales = [sizes, a, b, c, d];
        }
    }

    fn group_scale([_, scales, _]: Planes<'_>, group: usize) -> [f32; 2] {
        let at = 5 * (group / 16);
        let [size, min_size] = unpack2x16float(scales[at]);
        let byte = scales[at + 1 + group / 4 % 4] >> (8 * (group % 4));
        [size * (byte & 15) as f32, min_size * -(((byte >> 4) & 15) as f32)]
    }

    fn group_quants([quants, _, _]: Planes<'_>, group: usize, word: usize) -> [f32; 4] {
        unpack4x_u8((quants[group] >> (2 * word)) & PAIRS)
    }
}

/// Bit pairs; seven words for each two blocks with their half floats and six-bit scales; inverted third bits.
pub(super) struct Q3K;

impl Layout for Q3K {
    const GROUP: usize = 16;
    const HAS_OFFSET: bool = false;

    fn plane_words(blocks: u32) -> Option<[u32; 3]> {
        Some([16 * blocks, 3 * blocks + blocks.div_ceil(2), 8 * blocks])
    }

    fn pack_row(blocks: &[u8], [quants, scales, third]: PlanesMut<'_>) {
        let (blocks, _) = blocks.as_chunks::<110>();
        let planes = quants.as_chunks_mut::<16>().0.iter_mut().zip(third.as_chunks_mut::<8>().0);
        for (block, (quants, third)) in blocks.iter().zip(planes) {
            let pairs = words::<32, 16, _>(block);
            for (group, quants) in quants.iter_mut().enumerate() {
                *quants = (0..4).fold(0, |word, w| word | (two_bits(&pairs, group, w) << (6 - 2 * w)));
            }
            // Bit k of these bytes is the third bit of groups 2k and 2k + 1.
            let mask = words::<0, 8, _>(block);
            for (k, third) in third.iter_mut().enumerate() {
                *third = !top_bits(|w| (mask[w] >> k) & ONES);
            }
        }
        for (pair, out) in blocks.chunks(2).zip(scales.chunks_mut(7)) {
            out[0] = half_word_pair::<108, _>(pair);
            for (block, out) in pair.iter().zip(out[1..].as_chunks_mut().0) {
                *out = words::<96, 3, _>(block);
            }
        }
    }

    fn group_scale([_, scales, _]: Planes<'_>, group: usize) -> [f32; 2] {
        let (pair, side) = (7 * (group / 32), group / 16 % 2);
        let at = pair + 1 + 3 * side;
        let byte = 8 * (group % 4);
        let low = (scales[at + group / 4 % 2] >> (byte + ((group / 2) & 4))) & 15;
        let high = (scales[at + 2] >> (byte + ((group / 2) & 6))) & 3;
        let [size, _] = unpack2x16float(scales[pair] >> (16 * side));
        [size * ((low | (high << 4)) as i32 - 32) as f32 * 0.03125, 0.0]
    }

    fn group_quants([quants, _, third]: Planes<'_>, group: usize, word: usize) -> [f32; 4] {
        let low = (quants[group] << (2 * word)) & 0xc0c0_c0c0;
        let third = (third[group / 2] << (4 * (group % 2) + word)) & 0x8080_8080;
        unpack4x_i8((low >> 1) | third)
    }
}

/// Nibbles; four words for each block with two half floats, eight scales and eight minimums.
pub(super) struct Q4K;

impl Layout for Q4K {
    const GROUP: usize = 32;
    const HAS_OFFSET: bool = true;

    fn plane_words(blocks: u32) -> Option<[u32; 3]> {
        Some([32 * blocks, 4 * blocks, 0])
    }

    fn pack_row(blocks: &[u8], [quants, scales, _]: PlanesMut<'_>) {
        let planes = quants.as_chunks_mut().0.iter_mut().zip(scales.as_chunks_mut().0);
        for (block, (quants, scales)) in blocks.as_chunks::<144>().0.iter().zip(planes) {
            *quants = nibbles_by_group(words::<16, 32, _>(block));
            *scales = scales_and_minimums(words::<0, 4, _>(block));
        }
    }

    fn group_scale([_, scales, _]: Planes<'_>, group: usize) -> [f32; 2] {
        scale_and_minimum(scales, group, 1.0)
    }

    fn group_quants([quants, _, _]: Planes<'_>, group: usize, word: usize) -> [f32; 4] {
        unpack4x_u8(nibbles(quants, 4, group, word))
    }
}

/// As [`Q4K`], with a word of fifth bits for each group.
pub(super) struct Q5K;

impl Layout for Q5K {
    const GROUP: usize = 32;
    const HAS_OFFSET: bool = true;

    fn plane_words(blocks: u32) -> Option<[u32; 3]> {
        Some([32 * blocks, 4 * blocks, 8 * blocks])
    }

    fn pack_row(blocks: &[u8], [quants, scales, fifth]: PlanesMut<'_>) {
        let planes = quants.as_chunks_mut().0.iter_mut().zip(scales.as_chunks_mut().0);
        let planes = planes.zip(fifth.as_chunks_mut::<8>().0);
        for (block, ((quants, scales), fifth)) in blocks.as_chunks::<176>().0.iter().zip(planes) {
            *quants = nibbles_by_group(words::<48, 32, _>(block));
            *scales = scales_and_minimums(words::<0, 4, _>(block));
            // Bit k of these bytes is the fifth bit of group k.
            let mask = words::<16, 8, _>(block);
            for (k, fifth) in fifth.iter_mut().enumerate() {
                *fifth = top_bits(|w| (mask[w] >> k) & ONES);
            }
        }
    }

    fn group_scale([_, scales, _]: Planes<'_>, group: usize) -> [f32; 2] {
        scale_and_minimum(scales, group, 0.125)
    }

    fn group_quants([quants, _, fifth]: Planes<'_>, group: usize, word: usize) -> [f32; 4] {
        unpack4x_u8((nibbles(quants, 4, group, word) << 3) | ((fifth[group] << word) & 0x8080_8080))
    }
}

/// Nibbles; nine words for each two blocks with their half floats and signed scales; pairs of high bits.
pub(super) struct Q6K;

impl Layout for Q6K {
    const GROUP: usize = 16;
    const HAS_OFFSET: bool = false;

    fn plane_words(blocks: u32) -> Option<[u32; 3]> {
        Some([32 * blocks, 4 * blocks + blocks.div_ceil(2), 16 * blocks])
    }

    fn pack_row(blocks: &[u8], [quants, scales, high]: PlanesMut<'_>) {
        let (blocks, _) = blocks.as_chunks::<210>();
        let planes = quants.as_chunks_mut::<32>().0.iter_mut().zip(high.as_chunks_mut::<16>().0);
        for (block, (quants, high)) in blocks.iter().zip(planes) {
            let (low_bits, high_bits) = (words::<0, 32, _>(block), words::<128, 16, _>(block));
            for (group, (quants, high)) in quants.as_chunks_mut().0.iter_mut().zip(high).enumerate() {
                // Each half of a block is four rows of 32: rows 0 and 1 in the low nibbles of the half's two
                // runs of 32 bytes, rows 2 and 3 in their high nibbles; all four share a run of high pairs.
                let (half, row, side) = (group / 8, group / 2 % 4, group % 2);
                let low_at = 16 * half + 8 * (row % 2) + 4 * side;
                let high_at = 8 * half + 4 * side;
                *quants = join_nibbles::<2>(|w| (low_bits[low_at + w] >> (4 * (row / 2))) & NIBBLES);
                let pairs = (0..4).fold(0, |word, w| {
                    word | (((high_bits[high_at + w] >> (2 * row)) & PAIRS) << (6 - 2 * w))
                });
                // The upper bit of every pair: from a bias of 32 to two's complement.
                *high = pairs ^ 0xaaaa_aaaa;
            }
        }
        for (pair, out) in blocks.chunks(2).zip(scales.chunks_mut(9)) {
            out[0] = half_word_pair::<208, _>(pair);
            for (block, out) in pair.iter().zip(out[1..].as_chunks_mut().0) {
                *out = words::<192, 4, _>(block);
            }
        }
    }

    fn group_scale([_, scales, _]: Planes<'_>, group: usize) -> [f32; 2] {
        let pair = 9 * (group / 32);
        let [size, _] = unpack2x16float(scales[pair] >> (group & 16));
        let [scale, ..] = unpack4x_i8(scales[pair + 1 + group / 4 % 8] >> (8 * (group % 4)));
        [size * scale * 0.25, 0.0]
    }

    fn group_quants([quants, _, high]: Planes<'_>, group: usize, word: usize) -> [f32; 4] {
        unpack4x_i8((nibbles(quants, 2, group, word) << 2) | ((high[group] << (2 * word)) & 0xc0c0_c0c0))
    }
}

/// The two-bit quants of values `4w` to `4w + 3` of a group, at the bottom of their bytes.
///
/// Each half of a block has 32 bytes of quants; its four pairs of groups take two bits of each byte.
#[inline(always)]
fn two_bits(pairs: &[u32; 16], group: usize, w: usize) -> u32 {
    let (half, pair, side) = (group / 8, group / 2 % 4, group % 2);
    (pairs[8 * half + 4 * side + w] >> (2 * pair)) & PAIRS
}

/// The nibble plane of Q4_K and Q5_K, where two groups of 32 share 32 bytes.
#[inline(always)]
fn nibbles_by_group(packed: [u32; 32]) -> [u32; 32] {
    join_nibbles(|i| (packed[i / 16 * 8 + i % 8] >> ((i / 8 % 2) * 4)) & NIBBLES)
}

/// The scale words of Q4_K and Q5_K: a group's fields come to lie in fewer words than they do in the file.
#[inline(always)]
fn scales_and_minimums([sizes, a, b, c]: [u32; 4]) -> [u32; 4] {
    const SIX: u32 = 0x3f3f_3f3f;
    const UPPER_PAIRS: u32 = 0x3030_3030;
    // The first four scales and minimums are whole in the file; the others have their low nibbles in `c` and
    // their upper two bits above the first four.
    let scales = [a & SIX, (c & NIBBLES) | ((a >> 2) & UPPER_PAIRS)];
    let minimums = [b & SIX, ((c >> 4) & NIBBLES) | ((b >> 2) & UPPER_PAIRS)];
    let low = |i: usize| scales[i] | ((minimums[i] & PAIRS) << 6);
    let high = |i: usize| (minimums[i] >> 2) & NIBBLES;
    [sizes, low(0), low(1), high(0) | (high(1) << 4)]
}

/// Scale and offset of a group of Q4_K and Q5_K; `unit` is what one step of a quant counts as read.
#[inline(always)]
fn scale_and_minimum(scales: &[u32], group: usize, unit: f32) -> [f32; 2] {
    let (at, byte) = (4 * (group / 8), 8 * (group % 4));
    let [size, min_size] = unpack2x16float(scales[at]);
    let low = scales[at + 1 + group / 4 % 2] >> byte;
    let high = scales[at + 3] >> (byte + (group & 4));
    let minimum = ((low >> 6) & 3) | ((high & 15) << 2);
    [size * ((low & 63) as f32 * unit), min_size * -(minimum as f32)]
}
