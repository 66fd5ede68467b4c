//! Q8_0: the largest magnitude of 32 becomes ±127; the scale is a half float.

use super::search::clamped;
use super::{finite, inverse_or_zero, largest_magnitude, nearest_byte, stored_scale};

/// The step is a 127th of the largest magnitude, and values are rounded to the step as stored, not as
/// computed, so the half float's own rounding adds nothing to the error of the values inside the range.
#[inline(always)]
pub(in super::super) fn q8_0(values: &[f32; 32], out: &mut [u8; 34]) {
    let values = finite(values);
    let (d, bits) = stored_scale(largest_magnitude(&values) / 127.0);
    let inverse = inverse_or_zero(d);
    out[..2].copy_from_slice(&bits.to_le_bytes());
    for (out, value) in out[2..].iter_mut().zip(values) {
        *out = nearest_byte(clamped(value * inverse, -127.0, 127.0));
    }
}
