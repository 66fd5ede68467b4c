//! Bits in words: what the layouts share.
//!
//! Packing works on four bytes at a time, so masks repeat one byte four times. The reading half has WGSL's
//! functions under WGSL's names.

/// The low nibble of each byte.
pub(super) const NIBBLES: u32 = 0x0f0f_0f0f;

/// The low two bits of each byte.
pub(super) const PAIRS: u32 = 0x0303_0303;

/// The lowest bit of each byte.
pub(super) const ONES: u32 = 0x0101_0101;

/// The `LEN` little-endian words from byte `AT` on; a field outside its block does not compile.
#[inline(always)]
pub(super) fn words<const AT: usize, const LEN: usize, const BLOCK: usize>(
    block: &[u8; BLOCK],
) -> [u32; LEN] {
    const { assert!(AT + 4 * LEN <= BLOCK, "the field lies inside the block") };
    std::array::from_fn(|i| {
        let at = AT + 4 * i;
        u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
    })
}

/// The two bytes from byte `AT` on, as the low half of a word.
#[inline(always)]
pub(super) fn half_word<const AT: usize, const BLOCK: usize>(block: &[u8; BLOCK]) -> u32 {
    const { assert!(AT + 2 <= BLOCK, "the field lies inside the block") };
    u32::from(u16::from_le_bytes([block[AT], block[AT + 1]]))
}

/// The half words at byte `AT` of one block or two, the first one in the low half.
#[inline(always)]
pub(super) fn half_word_pair<const AT: usize, const BLOCK: usize>(pair: &[[u8; BLOCK]]) -> u32 {
    pair.iter().rev().fold(0, |word, block| (word << 16) | half_word::<AT, BLOCK>(block))
}

/// Joins words of one code per byte in twos: the first of two in the low nibbles, the second in the high.
#[inline(always)]
pub(super) fn join_nibbles<const LEN: usize>(codes: impl Fn(usize) -> u32) -> [u32; LEN] {
    std::array::from_fn(|i| codes(2 * i) | (codes(2 * i + 1) << 4))
}

/// The nibble plane of a block of 32 from 16 bytes with the first half in the low nibbles.
#[inline(always)]
pub(super) fn split_halves(packed: [u32; 4]) -> [u32; 4] {
    join_nibbles(|i| if i < 4 { packed[i] & NIBBLES } else { (packed[i - 4] >> 4) & NIBBLES })
}

/// The top bits of 32 values in one word: value `4w + i` at bit `7 − w` of byte `i`.
///
/// `bits(w)` has the bits of values `4w` to `4w + 3` at the bottom of its bytes.
#[inline(always)]
pub(super) fn top_bits(bits: impl Fn(usize) -> u32) -> u32 {
    (0..8).fold(0, |word, w| word | (bits(w) << (7 - w)))
}

/// Moves bits 0 to 3 to the bottom of bytes 0 to 3.
#[inline(always)]
pub(super) const fn spread(bits: u32) -> u32 {
    // One copy for each byte, each seven places further; no two copies share a place.
    ((bits & 15) * 0x0020_4081) & ONES
}

/// The four codes that a group's `word` has in a nibble plane with `words` words per group.
#[inline(always)]
pub(super) fn nibbles(plane: &[u32], words: usize, group: usize, word: usize) -> u32 {
    (plane[words * group + word / 2] >> (4 * (word % 2))) & NIBBLES
}

/// The half float of a group in a plane with two to a word.
#[inline(always)]
pub(super) fn half_at(plane: &[u32], group: usize) -> f32 {
    unpack2x16float(plane[group / 2] >> (16 * (group % 2)))[0]
}

/// Both halves of a word as half floats, the low half first.
#[inline(always)]
pub(super) fn unpack2x16float(word: u32) -> [f32; 2] {
    [half_to_f32(word & 0xffff), half_to_f32(word >> 16)]
}

/// The bytes of a word as signed numbers, lowest first.
#[inline(always)]
pub(super) fn unpack4x_i8(word: u32) -> [f32; 4] {
    word.to_le_bytes().map(|byte| f32::from(byte as i8))
}

/// The bytes of a word as unsigned numbers, lowest first.
#[inline(always)]
pub(super) fn unpack4x_u8(word: u32) -> [f32; 4] {
    word.to_le_bytes().map(f32::from)
}

/// The value of an IEEE half float. Exact; NaN stays NaN.
#[inline(always)]
fn half_to_f32(bits: u32) -> f32 {
    // What moves an exponent biased by 15 to one biased by 127; a product does so for subnormals too.
    const REBIAS: f32 = f32::from_bits((127 + 127 - 15) << 23);

    let magnitude = (bits & 0x7fff) << 13;
    let magnitude = if bits & 0x7c00 == 0x7c00 {
        f32::from_bits(magnitude | f32::INFINITY.to_bits())
    } else {
        f32::from_bits(magnitude) * REBIAS
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}
