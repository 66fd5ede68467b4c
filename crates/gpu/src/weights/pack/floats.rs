//! F32, F16 and BF16: values stored as they are. Only these have rows of any width.

use super::bits::unpack2x16float;
use super::layout::{Layout, Planes, PlanesMut};

/// Rows are padded with zeros to a multiple of this, so that kernels may read whole groups.
const GROUP: usize = 32;

/// One value per word.
pub(super) struct F32;

impl Layout for F32 {
    const GROUP: usize = GROUP;
    const HAS_OFFSET: bool = false;

    fn plane_words(values: u32) -> Option<[u32; 3]> {
        Some([values.checked_next_multiple_of(GROUP as u32)?, 0, 0])
    }

    fn pack_row(values: &[u8], [words, _, _]: PlanesMut<'_>) {
        let (values, _) = values.as_chunks();
        let (words, padding) = words.split_at_mut(values.len());
        for (word, &value) in words.iter_mut().zip(values) {
            *word = u32::from_le_bytes(value);
        }
        padding.fill(0);
    }

    fn group_scale(_: Planes<'_>, _: usize) -> [f32; 2] {
        [1.0, 0.0]
    }

    fn group_quants([words, _, _]: Planes<'_>, group: usize, word: usize) -> [f32; 4] {
        std::array::from_fn(|i| f32::from_bits(words[GROUP * group + 4 * word + i]))
    }
}

/// Two half floats per word.
pub(super) struct F16;

impl Layout for F16 {
    const GROUP: usize = GROUP;
    const HAS_OFFSET: bool = false;

    fn plane_words(values: u32) -> Option<[u32; 3]> {
        two_per_word(values)
    }

    fn pack_row(values: &[u8], [words, _, _]: PlanesMut<'_>) {
        pack_two_per_word(values, words);
    }

    fn group_scale(_: Planes<'_>, _: usize) -> [f32; 2] {
        [1.0, 0.0]
    }

    fn group_quants([words, _, _]: Planes<'_>, group: usize, word: usize) -> [f32; 4] {
        let at = GROUP / 2 * group + 2 * word;
        let ([a, b], [c, d]) = (unpack2x16float(words[at]), unpack2x16float(words[at + 1]));
        [a, b, c, d]
    }
}

/// Two bfloats per word.
pub(super) struct Bf16;

impl Layout for Bf16 {
    const GROUP: usize = GROUP;
    const HAS_OFFSET: bool = false;

    fn plane_words(values: u32) -> Option<[u32; 3]> {
        two_per_word(values)
    }

    fn pack_row(values: &[u8], [words, _, _]: PlanesMut<'_>) {
        pack_two_per_word(values, words);
    }

    fn group_scale(_: Planes<'_>, _: usize) -> [f32; 2] {
        [1.0, 0.0]
    }

    fn group_quants([words, _, _]: Planes<'_>, group: usize, word: usize) -> [f32; 4] {
        let at = GROUP / 2 * group + 2 * word;
        let (first, second) = (words[at], words[at + 1]);
        [first << 16, first & 0xffff_0000, second << 16, second & 0xffff_0000].map(f32::from_bits)
    }
}

fn two_per_word(values: u32) -> Option<[u32; 3]> {
    Some([values.checked_next_multiple_of(GROUP as u32)? / 2, 0, 0])
}

fn pack_two_per_word(values: &[u8], words: &mut [u32]) {
    let (pairs, last) = values.as_chunks();
    let (words, padding) = words.split_at_mut(pairs.len());
    for (word, &pair) in words.iter_mut().zip(pairs) {
        *word = u32::from_le_bytes(pair);
    }
    padding.fill(0);
    // A row of odd width ends in the middle of a word.
    if let &[low, high] = last {
        padding[0] = u32::from_le_bytes([low, high, 0, 0]);
    }
}
