//! Blocks of 32 values with one scale, and sometimes one offset. The layouts are those of `rullama_gguf::format`.

use super::{Block, field, half};

type Block32<'a> = Block<'a, 32, 2>;

#[inline(always)]
pub(super) fn q4_0(block: &[u8; 18], out: Block32<'_>) {
    let d = half(block, 0);
    nibbles(field(block, 2), out.quants);
    (*out.scales, *out.minimums) = ([d; 2], [8.0 * d; 2]);
}

#[inline(always)]
pub(super) fn q4_1(block: &[u8; 20], out: Block32<'_>) {
    nibbles(field(block, 4), out.quants);
    (*out.scales, *out.minimums) = ([half(block, 0); 2], [-half(block, 2); 2]);
}

#[inline(always)]
pub(super) fn q5_0(block: &[u8; 22], out: Block32<'_>) {
    let d = half(block, 0);
    nibbles(field(block, 6), out.quants);
    fifth_bits(*field(block, 2), out.quants);
    (*out.scales, *out.minimums) = ([d; 2], [16.0 * d; 2]);
}

#[inline(always)]
pub(super) fn q5_1(block: &[u8; 24], out: Block32<'_>) {
    nibbles(field(block, 8), out.quants);
    fifth_bits(*field(block, 4), out.quants);
    (*out.scales, *out.minimums) = ([half(block, 0); 2], [-half(block, 2); 2]);
}

#[inline(always)]
pub(super) fn q8_0(block: &[u8; 34], out: Block32<'_>) {
    *out.quants = *field(block, 2);
    *out.scales = [half(block, 0); 2];
}

/// Low nibbles are the first 16 values, high nibbles the last 16.
#[inline(always)]
fn nibbles(packed: &[u8; 16], quants: &mut [u8; 32]) {
    // A copy tells the optimiser that writing the quants leaves the packed ones alone.
    let packed = *packed;
    let mut values = [0; 32];
    for i in 0..16 {
        (values[i], values[16 + i]) = (packed[i] & 15, packed[i] >> 4);
    }
    *quants = values;
}

/// Adds bit `i` of the mask to value `i`, as its fifth bit.
#[inline(always)]
fn fifth_bits(mask: [u8; 4], quants: &mut [u8; 32]) {
    let mut values = *quants;
    for i in 0..32 {
        values[i] |= if mask[i / 8] & (1 << (i % 8)) != 0 { 16 } else { 0 };
    }
    *quants = values;
}
