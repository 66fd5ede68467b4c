//! Q4_0: one half-float scale for 32 quants from −8 to 7.

use super::search::{Lanes, clamped, symmetric_scale};
use super::{finite, inverse_or_zero, nearest_byte, stored_scale};

const RANGE: [f32; 2] = [-8.0, 7.0];

/// Where on the quants' scale to put the value of largest magnitude. The range reaches one step further on
/// its negative side, so that is where to look first; a little beyond the end, clipping one value to serve
/// the others is often worth it. The whole numbers among them find the scale of values that were quantised
/// before.
const PEAKS: [Lanes; 2] =
    [[-8.75, -8.5, -8.25, -8.0, -7.75, -7.5, -7.25, -7.0], [6.5, 6.75, 7.0, 7.25, 7.5, 7.75, 8.0, 8.25]];

#[inline(always)]
pub(in super::super) fn q4_0(values: &[f32; 32], out: &mut [u8; 18]) {
    let values = finite(values);
    let (d, bits) = stored_scale(symmetric_scale(&values, &PEAKS, RANGE));
    let inverse = inverse_or_zero(d);

    let mut quants = [0; 32];
    for (q, value) in quants.iter_mut().zip(values) {
        *q = nearest_byte(clamped(value * inverse, RANGE[0], RANGE[1]) + 8.0);
    }
    out[..2].copy_from_slice(&bits.to_le_bytes());
    for (i, out) in out[2..].iter_mut().enumerate() {
        *out = quants[i] | (quants[i + 16] << 4);
    }
}
