//! Formats whose block is one number: floats and integers.
//!
//! Each function decodes a single value; the loop around it is what vectorises. `F64`, `I32` and `I64` lose
//! what an f32 cannot hold: they are rounded to the nearest.

use super::float16::{bfloat_to_f32, half_to_f32};

#[inline(always)]
pub(super) fn f32(block: &[u8; 4], out: &mut [f32; 1]) {
    *out = [f32::from_le_bytes(*block)];
}

#[inline(always)]
pub(super) fn f16(block: &[u8; 2], out: &mut [f32; 1]) {
    *out = [half_to_f32(u16::from_le_bytes(*block))];
}

#[inline(always)]
pub(super) fn bf16(block: &[u8; 2], out: &mut [f32; 1]) {
    *out = [bfloat_to_f32(u16::from_le_bytes(*block))];
}

#[inline(always)]
pub(super) fn f64(block: &[u8; 8], out: &mut [f32; 1]) {
    *out = [f64::from_le_bytes(*block) as f32];
}

#[inline(always)]
pub(super) fn i8(block: &[u8; 1], out: &mut [f32; 1]) {
    *out = [f32::from(i8::from_le_bytes(*block))];
}

#[inline(always)]
pub(super) fn i16(block: &[u8; 2], out: &mut [f32; 1]) {
    *out = [f32::from(i16::from_le_bytes(*block))];
}

#[inline(always)]
pub(super) fn i32(block: &[u8; 4], out: &mut [f32; 1]) {
    *out = [i32::from_le_bytes(*block) as f32];
}

#[inline(always)]
pub(super) fn i64(block: &[u8; 8], out: &mut [f32; 1]) {
    *out = [i64::from_le_bytes(*block) as f32];
}
