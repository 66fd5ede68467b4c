//! Q5_0: one half-float scale for 32 quants from −16 to 15, their fifth bits apart from the other four.

use super::search::{Lanes, clamped, symmetric_scale};
use super::{finite, inverse_or_zero, nearest_byte, stored_scale};

const RANGE: [f32; 2] = [-16.0, 15.0];

/// Where on the quants' scale to put the value of largest magnitude; as for `Q4_0`, with twice as many steps.
const PEAKS: [Lanes; 2] = [
    [-16.75, -16.5, -16.25, -16.0, -15.75, -15.5, -15.25, -15.0],
    [14.5, 14.75, 15.0, 15.25, 15.5, 15.75, 16.0, 16.25],
];

#[inline(always)]
pub(in super::super) fn q5_0(values: &[f32; 32], out: &mut [u8; 22]) {
    let values = finite(values);
    let (d, bits) = stored_scale(symmetric_scale(&values, &PEAKS, RANGE));
    let inverse = inverse_or_zero(d);

    let mut quants = [0; 32];
    for (q, value) in quants.iter_mut().zip(values) {
        *q = nearest_byte(clamped(value * inverse, RANGE[0], RANGE[1]) + 16.0);
    }
    let mut fifth = 0u32;
    for (i, q) in quants.iter().enumerate() {
        fifth |= u32::from(q >> 4) << i;
    }
    out[..2].copy_from_slice(&bits.to_le_bytes());
    out[2..6].copy_from_slice(&fifth.to_le_bytes());
    for (i, out) in out[6..].iter_mut().enumerate() {
        *out = (quants[i] & 15) | (quants[i + 16] << 4);
    }
}
