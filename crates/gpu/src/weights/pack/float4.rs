//! MXFP4: four-bit floats with a power of two for each 32.

use super::bits::{nibbles, split_halves, words};
use super::layout::{Layout, Planes, PlanesMut};

/// Codes, exponents four to a word.
pub(super) struct Mxfp4;

impl Layout for Mxfp4 {
    const GROUP: usize = 32;
    const HAS_OFFSET: bool = false;

    fn plane_words(blocks: u32) -> Option<[u32; 3]> {
        Some([4 * blocks, blocks.div_ceil(4), 0])
    }

    fn pack_row(blocks: &[u8], [codes, exponents, _]: PlanesMut<'_>) {
        let (blocks, _) = blocks.as_chunks::<17>();
        for (block, codes) in blocks.iter().zip(codes.as_chunks_mut().0) {
            *codes = split_halves(words::<1, 4, _>(block));
        }
        for (four, word) in blocks.chunks(4).zip(exponents) {
            *word = four.iter().rev().fold(0, |word, block| (word << 8) | u32::from(block[0]));
        }
    }

    fn group_scale([_, exponents, _]: Planes<'_>, group: usize) -> [f32; 2] {
        let e = (exponents[group / 4] >> (8 * (group % 4))) & 255;
        let bits = if e < 2 { 0x20_0000 << (e & 1) } else { (e - 1) << 23 };
        [f32::from_bits(bits), 0.0]
    }

    fn group_quants([codes, _, _]: Planes<'_>, group: usize, word: usize) -> [f32; 4] {
        nibbles(codes, 4, group, word).to_le_bytes().map(|code| {
            // The eight magnitudes 0 1 2 3 4 6 8 12, a nibble each.
            let magnitude = ((0xc864_3210_u32 >> (4 * (code & 7))) & 15) as f32;
            if code > 7 { -magnitude } else { magnitude }
        })
    }
}
