//! From f32 to blocks.
//!
//! Every block format here searches for the scales that minimise the squared error of the block. The search
//! has the same two steps throughout: try a handful of grids, and for each let least squares say which scale
//! its quants would have wanted. [`search`] tries eight grids at a time, one to a vector lane.

pub(super) mod q4_0;
pub(super) mod q4_k;
pub(super) mod q5_0;
pub(super) mod q6_k;
pub(super) mod q8_0;
pub(super) mod scalar;
mod search;

use super::float16::{f32_to_half, half_to_f32};

/// Beyond this no format's scales reach; clamping here keeps sums of squares finite.
const LIMIT: f32 = (1u64 << 40) as f32;

/// The values with NaN replaced by zero and infinities by the largest finite magnitude beside them.
#[inline(always)]
fn finite<const LEN: usize>(values: &[f32; LEN]) -> [f32; LEN] {
    if values.iter().fold(true, |all, value| all & (value.abs() <= LIMIT)) {
        return *values;
    }
    replace_unusable(values)
}

#[cold]
#[inline(never)]
fn replace_unusable<const LEN: usize>(values: &[f32; LEN]) -> [f32; LEN] {
    let finite = values.iter().filter(|value| value.is_finite());
    let largest = finite.fold(0.0f32, |largest, value| largest.max(value.abs())).min(LIMIT);
    values.map(|value| if value.is_nan() { 0.0 } else { value.clamp(-largest, largest) })
}

/// The largest magnitude among finite values.
#[inline(always)]
fn largest_magnitude<const LEN: usize>(values: &[f32; LEN]) -> f32 {
    // For floats without their sign, the order of the bit patterns is the order of the values; unlike a
    // float maximum, an integer maximum may be taken in any order and therefore vectorises.
    f32::from_bits(values.iter().fold(0, |largest, value| largest.max(value.abs().to_bits())))
}

/// A scale as a half float can hold it, and its bits. Saturates instead of becoming infinite.
#[inline(always)]
fn stored_scale(scale: f32) -> (f32, u16) {
    const LARGEST: f32 = 65504.0;
    let bits = f32_to_half(scale.clamp(-LARGEST, LARGEST));
    (half_to_f32(bits), bits)
}

/// A scale's inverse; a scale of zero makes every quant zero.
#[inline(always)]
fn inverse_or_zero(scale: f32) -> f32 {
    if scale == 0.0 { 0.0 } else { 1.0 / scale }
}

/// Adding and subtracting this leaves no fraction bits, which rounds to the nearest integer, ties to even, in
/// two operations that every vector unit has. Holds for magnitudes up to 2^22; larger ones stay that large,
/// which is enough where a clamp follows.
const ROUNDER: f32 = 12_582_912.0;

/// The nearest integer; see [`ROUNDER`] for the range.
#[inline(always)]
fn round(value: f32) -> f32 {
    (value + ROUNDER) - ROUNDER
}

/// The low byte of the nearest integer: a signed or unsigned quant as stored.
#[inline(always)]
fn nearest_byte(value: f32) -> u8 {
    (value + ROUNDER).to_bits() as u8
}
