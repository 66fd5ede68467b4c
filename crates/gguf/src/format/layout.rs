//! Picks fields out of a block's bytes. All multi-byte fields are little-endian.

use super::float16::half_to_f32;

/// The `LEN` bytes at offset `AT`; a field outside its block does not compile.
#[inline(always)]
pub(super) fn bytes<const AT: usize, const LEN: usize, const BLOCK: usize>(
    block: &[u8; BLOCK],
) -> &[u8; LEN] {
    const { assert!(AT + LEN <= BLOCK, "the field lies inside the block") };
    block[AT..].first_chunk().expect("the length was checked at compile time")
}

/// The half float at offset `AT`.
#[inline(always)]
pub(super) fn half<const AT: usize, const BLOCK: usize>(block: &[u8; BLOCK]) -> f32 {
    half_to_f32(u16::from_le_bytes(*bytes::<AT, 2, BLOCK>(block)))
}

/// The bytes of a field as two-byte words, `WORDS` of them from offset `AT`.
#[inline(always)]
pub(super) fn words<const AT: usize, const WORDS: usize, const BLOCK: usize>(
    block: &[u8; BLOCK],
) -> [u16; WORDS] {
    const { assert!(AT + 2 * WORDS <= BLOCK, "the field lies inside the block") };
    std::array::from_fn(|i| u16::from_le_bytes([block[AT + 2 * i], block[AT + 2 * i + 1]]))
}

/// The `LEN` elements of `items` from `at` on, as an array: inner loops over it need no bounds checks.
#[inline(always)]
pub(super) fn part<const LEN: usize, T>(items: &[T], at: usize) -> &[T; LEN] {
    items[at..].first_chunk().expect("callers stay inside their arrays")
}

/// The `LEN` elements of `items` from `at` on, to write to.
#[inline(always)]
pub(super) fn part_mut<const LEN: usize, T>(items: &mut [T], at: usize) -> &mut [T; LEN] {
    items[at..].first_chunk_mut().expect("callers stay inside their arrays")
}
