//! MXFP4: four-bit floats with a power of two for each 32.

use super::bits::{ONES, nibbles, split_halves, unpack4x_i8, words};
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
        unpack4x_i8(doubled(nibbles(codes, 4, group, word)))
    }
}

/// The doubled floats of four codes, one in each byte, as four signed bytes.
///
/// The magnitudes 0 1 2 3 4 6 8 12 are the lower bits m of a code, to which a code from 4 on adds m & 3, and 7
/// two more.
fn doubled(codes: u32) -> u32 {
    /// Bytes are 128 too large while they are subtracted from, so that none borrows from its neighbour.
    const SIGNS: u32 = 0x8080_8080;

    let more = codes & (((codes >> 2) & ONES) * 3);
    let most = more & (more >> 1);
    let magnitude = (codes & 0x0707_0707) + more + (most << 1);
    let negative = magnitude & (((codes >> 3) & ONES) * 255);
    (SIGNS + magnitude - 2 * negative) ^ SIGNS
}
