//! Formats whose block is one number.

use super::super::float16::{f32_to_bfloat, f32_to_half};

#[inline(always)]
pub(in super::super) fn f32(value: &[f32; 1], out: &mut [u8; 4]) {
    *out = value[0].to_le_bytes();
}

#[inline(always)]
pub(in super::super) fn f16(value: &[f32; 1], out: &mut [u8; 2]) {
    *out = f32_to_half(value[0]).to_le_bytes();
}

#[inline(always)]
pub(in super::super) fn bf16(value: &[f32; 1], out: &mut [u8; 2]) {
    *out = f32_to_bfloat(value[0]).to_le_bytes();
}
