//! The first generation of block formats: 32 values, one scale, sometimes one offset.
//!
//! Four- and five-bit quants sit two to a byte: the low nibbles are the first 16 values, the high nibbles the
//! last 16. A fifth bit comes from a 32-bit mask.

use super::layout::{bytes, half};

/// Scale, 16 bytes of nibbles. `y = d · (q − 8)`.
#[inline(always)]
pub(super) fn q4_0(block: &[u8; 18], out: &mut [f32; 32]) {
    let d = half::<0, _>(block);
    let quants = bytes::<2, 16, _>(block);
    nibbles(quants, out, |q, _| d * (f32::from(q) - 8.0));
}

/// Scale, offset, 16 bytes of nibbles. `y = d · q + m`.
#[inline(always)]
pub(super) fn q4_1(block: &[u8; 20], out: &mut [f32; 32]) {
    let (d, m) = (half::<0, _>(block), half::<2, _>(block));
    let quants = bytes::<4, 16, _>(block);
    nibbles(quants, out, |q, _| d * f32::from(q) + m);
}

/// Scale, 32 fifth bits, 16 bytes of nibbles. `y = d · (q − 16)`.
#[inline(always)]
pub(super) fn q5_0(block: &[u8; 22], out: &mut [f32; 32]) {
    let d = half::<0, _>(block);
    let fifth = fifth_bits(u32::from_le_bytes(*bytes::<2, 4, _>(block)));
    let quants = bytes::<6, 16, _>(block);
    nibbles(quants, out, |q, i| d * (f32::from(q | fifth[i]) - 16.0));
}

/// Scale, offset, 32 fifth bits, 16 bytes of nibbles. `y = d · q + m`.
#[inline(always)]
pub(super) fn q5_1(block: &[u8; 24], out: &mut [f32; 32]) {
    let (d, m) = (half::<0, _>(block), half::<2, _>(block));
    let fifth = fifth_bits(u32::from_le_bytes(*bytes::<4, 4, _>(block)));
    let quants = bytes::<8, 16, _>(block);
    nibbles(quants, out, |q, i| d * f32::from(q | fifth[i]) + m);
}

/// Scale, 32 signed bytes. `y = d · q`.
#[inline(always)]
pub(super) fn q8_0(block: &[u8; 34], out: &mut [f32; 32]) {
    signed_bytes(half::<0, _>(block), bytes::<2, 32, _>(block), out);
}

/// Scale, the sum of the quants times the scale, 32 signed bytes. The sum serves dot products, not decoding.
#[inline(always)]
pub(super) fn q8_1(block: &[u8; 36], out: &mut [f32; 32]) {
    signed_bytes(half::<0, _>(block), bytes::<4, 32, _>(block), out);
}

/// `y = d · q` for quants that are signed bytes.
#[inline(always)]
pub(super) fn signed_bytes<const LEN: usize>(d: f32, quants: &[u8; LEN], out: &mut [f32; LEN]) {
    // A copy tells the optimiser that writing `out` leaves the quants alone.
    let quants = *quants;
    for (out, q) in out.iter_mut().zip(quants) {
        *out = d * f32::from(q as i8);
    }
}

/// Calls `value` with each quant and its index.
#[inline(always)]
fn nibbles(packed: &[u8; 16], out: &mut [f32; 32], value: impl Fn(u8, usize) -> f32) {
    // All quants first and then one loop over them: in this form the vectors lie along the block.
    let quants: [u8; 32] = std::array::from_fn(|i| if i < 16 { packed[i] & 15 } else { packed[i - 16] >> 4 });
    for (i, out) in out.iter_mut().enumerate() {
        *out = value(quants[i], i);
    }
}

/// Bit `i` of the mask, moved to bit 4 of byte `i`.
#[inline(always)]
fn fifth_bits(mask: u32) -> [u8; 32] {
    let mask = mask.to_le_bytes();
    // Spread the mask's bytes first, then test one bit each: both steps are vector operations.
    std::array::from_fn(|i| if mask[i / 8] & (1 << (i % 8)) != 0 { 16 } else { 0 })
}
