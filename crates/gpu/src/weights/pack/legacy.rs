//! The first generation of block formats: 32 values, one scale, sometimes one offset. A block is a group.

use super::bits::{
    half_at, half_word_pair, nibbles, split_halves, spread, top_bits, unpack2x16float, unpack4x_i8,
    unpack4x_u8, words,
};
use super::layout::{Layout, Planes, PlanesMut};

/// Flips the top bit of every nibble: from a bias of 8 to two's complement.
const NIBBLE_SIGNS: u32 = 0x8888_8888;

/// Signed nibbles, scales two to a word.
pub(super) struct Q4_0;

impl Layout for Q4_0 {
    const GROUP: usize = 32;
    const HAS_OFFSET: bool = false;

    fn plane_words(blocks: u32) -> Option<[u32; 3]> {
        Some([4 * blocks, blocks.div_ceil(2), 0])
    }

    fn pack_row(blocks: &[u8], [quants, scales, _]: PlanesMut<'_>) {
        let (blocks, _) = blocks.as_chunks::<18>();
        for (block, quants) in blocks.iter().zip(quants.as_chunks_mut().0) {
            *quants = split_halves(words::<2, 4, _>(block)).map(|word| word ^ NIBBLE_SIGNS);
        }
        pack_halves(blocks, scales);
    }

    fn group_scale([_, scales, _]: Planes<'_>, group: usize) -> [f32; 2] {
        [half_at(scales, group) * 0.0625, 0.0]
    }

    fn group_quants([quants, _, _]: Planes<'_>, group: usize, word: usize) -> [f32; 4] {
        unpack4x_i8((quants[4 * group + word / 2] << (4 - 4 * (word % 2))) & 0xf0f0_f0f0)
    }
}

/// Nibbles, a word of scale and offset for each group.
pub(super) struct Q4_1;

impl Layout for Q4_1 {
    const GROUP: usize = 32;
    const HAS_OFFSET: bool = true;

    fn plane_words(blocks: u32) -> Option<[u32; 3]> {
        Some([4 * blocks, blocks, 0])
    }

    fn pack_row(blocks: &[u8], [quants, scales, _]: PlanesMut<'_>) {
        let planes = quants.as_chunks_mut().0.iter_mut().zip(scales);
        for (block, (quants, scale)) in blocks.as_chunks::<20>().0.iter().zip(planes) {
            *quants = split_halves(words::<4, 4, _>(block));
            [*scale] = words::<0, 1, _>(block);
        }
    }

    fn group_scale([_, scales, _]: Planes<'_>, group: usize) -> [f32; 2] {
        unpack2x16float(scales[group])
    }

    fn group_quants([quants, _, _]: Planes<'_>, group: usize, word: usize) -> [f32; 4] {
        unpack4x_u8(nibbles(quants, 4, group, word))
    }
}

/// Nibbles, scales two to a word, inverted fifth bits.
pub(super) struct Q5_0;

impl Layout for Q5_0 {
    const GROUP: usize = 32;
    const HAS_OFFSET: bool = false;

    fn plane_words(blocks: u32) -> Option<[u32; 3]> {
        Some([4 * blocks, blocks.div_ceil(2), blocks])
    }

    fn pack_row(blocks: &[u8], [quants, scales, fifth]: PlanesMut<'_>) {
        let (blocks, _) = blocks.as_chunks::<22>();
        for (block, (quants, fifth)) in blocks.iter().zip(quants.as_chunks_mut().0.iter_mut().zip(fifth)) {
            *quants = split_halves(words::<6, 4, _>(block));
            *fifth = !fifth_bits(words::<2, 1, _>(block));
        }
        pack_halves(blocks, scales);
    }

    fn group_scale([_, scales, _]: Planes<'_>, group: usize) -> [f32; 2] {
        [half_at(scales, group) * 0.125, 0.0]
    }

    fn group_quants([quants, _, fifth]: Planes<'_>, group: usize, word: usize) -> [f32; 4] {
        unpack4x_i8((nibbles(quants, 4, group, word) << 3) | ((fifth[group] << word) & 0x8080_8080))
    }
}

/// Nibbles, a word of scale and offset for each group, fifth bits.
pub(super) struct Q5_1;

impl Layout for Q5_1 {
    const GROUP: usize = 32;
    const HAS_OFFSET: bool = true;

    fn plane_words(blocks: u32) -> Option<[u32; 3]> {
        Some([4 * blocks, blocks, blocks])
    }

    fn pack_row(blocks: &[u8], [quants, scales, fifth]: PlanesMut<'_>) {
        let planes = quants.as_chunks_mut().0.iter_mut().zip(scales).zip(fifth);
        for (block, ((quants, scale), fifth)) in blocks.as_chunks::<24>().0.iter().zip(planes) {
            *quants = split_halves(words::<8, 4, _>(block));
            [*scale] = words::<0, 1, _>(block);
            *fifth = fifth_bits(words::<4, 1, _>(block));
        }
    }

    fn group_scale([_, scales, _]: Planes<'_>, group: usize) -> [f32; 2] {
        let [scale, offset] = unpack2x16float(scales[group]);
        [scale * 0.125, offset]
    }

    fn group_quants([quants, _, fifth]: Planes<'_>, group: usize, word: usize) -> [f32; 4] {
        unpack4x_u8((nibbles(quants, 4, group, word) << 3) | ((fifth[group] << word) & 0x8080_8080))
    }
}

/// Signed bytes, scales two to a word.
pub(super) struct Q8_0;

impl Layout for Q8_0 {
    const GROUP: usize = 32;
    const HAS_OFFSET: bool = false;

    fn plane_words(blocks: u32) -> Option<[u32; 3]> {
        Some([8 * blocks, blocks.div_ceil(2), 0])
    }

    fn pack_row(blocks: &[u8], [quants, scales, _]: PlanesMut<'_>) {
        let (blocks, _) = blocks.as_chunks::<34>();
        for (block, quants) in blocks.iter().zip(quants.as_chunks_mut().0) {
            *quants = words::<2, 8, _>(block);
        }
        pack_halves(blocks, scales);
    }

    fn group_scale([_, scales, _]: Planes<'_>, group: usize) -> [f32; 2] {
        [half_at(scales, group), 0.0]
    }

    fn group_quants([quants, _, _]: Planes<'_>, group: usize, word: usize) -> [f32; 4] {
        unpack4x_i8(quants[8 * group + word])
    }
}

/// The half floats that open each block, two to a word.
pub(super) fn pack_halves<const BLOCK: usize>(blocks: &[[u8; BLOCK]], halves: &mut [u32]) {
    for (pair, word) in blocks.chunks(2).zip(halves) {
        *word = half_word_pair::<0, BLOCK>(pair);
    }
}

/// From bit `i` for value `i` to the order of [`top_bits`].
#[inline(always)]
fn fifth_bits([mask]: [u32; 1]) -> u32 {
    top_bits(|w| spread(mask >> (4 * w)))
}
