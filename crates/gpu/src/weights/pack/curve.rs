//! IQ4: four-bit codes that name levels of a fixed curve.

use super::bits::{
    NIBBLES, half_at, join_nibbles, nibbles, split_halves, unpack2x16float, unpack4x_u8, words,
};
use super::layout::{Layout, Planes, PlanesMut};
use super::legacy::pack_halves;

/// Codes, scales two to a word.
pub(super) struct Iq4Nl;

impl Layout for Iq4Nl {
    const GROUP: usize = 32;
    const HAS_OFFSET: bool = false;

    fn plane_words(blocks: u32) -> Option<[u32; 3]> {
        Some([4 * blocks, blocks.div_ceil(2), 0])
    }

    fn pack_row(blocks: &[u8], [codes, scales, _]: PlanesMut<'_>) {
        let (blocks, _) = blocks.as_chunks::<18>();
        for (block, codes) in blocks.iter().zip(codes.as_chunks_mut().0) {
            *codes = split_halves(words::<2, 4, _>(block));
        }
        pack_halves(blocks, scales);
    }

    fn group_scale([_, scales, _]: Planes<'_>, group: usize) -> [f32; 2] {
        [half_at(scales, group), 0.0]
    }

    fn group_quants([codes, _, _]: Planes<'_>, group: usize, word: usize) -> [f32; 4] {
        unpack4x_u8(nibbles(codes, 4, group, word)).map(curve_level)
    }
}

/// Codes; two words for each block with its half float and its eight scales.
pub(super) struct Iq4Xs;

impl Layout for Iq4Xs {
    const GROUP: usize = 32;
    const HAS_OFFSET: bool = false;

    fn plane_words(blocks: u32) -> Option<[u32; 3]> {
        Some([32 * blocks, 2 * blocks, 0])
    }

    fn pack_row(blocks: &[u8], [codes, scales, _]: PlanesMut<'_>) {
        let planes = codes.as_chunks_mut::<32>().0.iter_mut().zip(scales.as_chunks_mut().0);
        for (block, (codes, scales)) in blocks.as_chunks::<136>().0.iter().zip(planes) {
            let packed = words::<8, 32, _>(block);
            // Each group of 32 has its first half in the low nibbles of 16 bytes.
            *codes = join_nibbles(|i| (packed[i / 8 * 4 + i % 4] >> (i & 4)) & NIBBLES);
            *scales = words::<0, 2, _>(block);
        }
    }

    fn group_scale([_, scales, _]: Planes<'_>, group: usize) -> [f32; 2] {
        let (at, k) = (2 * (group / 8), group % 8);
        let head = scales[at];
        let low = (scales[at + 1] >> (4 * k)) & 15;
        let high = (head >> (16 + 2 * k)) & 3;
        [unpack2x16float(head)[0] * ((low | (high << 4)) as i32 - 32) as f32, 0.0]
    }

    fn group_quants([codes, _, _]: Planes<'_>, group: usize, word: usize) -> [f32; 4] {
        unpack4x_u8(nibbles(codes, 4, group, word)).map(curve_level)
    }
}

/// The level that a code names: a quartic that passes within 0.44 of every level, rounded.
fn curve_level(code: f32) -> f32 {
    ((((0.001_586_043 * code + 0.031_086_44) * code - 1.371_927) * code + 24.173_83) * code - 126.567)
        .round_ties_even()
}
