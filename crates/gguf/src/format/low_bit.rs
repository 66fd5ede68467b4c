//! Formats of one or two bits per value: binary, ternary, and two bits with a fixed offset.

use super::layout::{bytes, half, part_mut};

/// One scale for 128 values of one bit: plus or minus the scale.
#[inline(always)]
pub(super) fn q1_0(block: &[u8; 18], out: &mut [f32; 128]) {
    let d = half::<0, _>(block);
    let quants: [u8; 16] = *bytes::<2, 16, _>(block);
    for (i, &byte) in quants.iter().enumerate() {
        for (bit, out) in part_mut::<8, _>(out, 8 * i).iter_mut().enumerate() {
            *out = if byte & (1 << bit) != 0 { d } else { -d };
        }
    }
}

/// One scale for 64 values of two bits, four to a byte in order. `y = (q − 1) · d`.
#[inline(always)]
pub(super) fn q2_0(block: &[u8; 18], out: &mut [f32; 64]) {
    let d = half::<0, _>(block);
    let quants: [u8; 16] = *bytes::<2, 16, _>(block);
    for (i, out) in out.iter_mut().enumerate() {
        *out = level((quants[i / 4] >> (2 * (i % 4))) & 3) * d;
    }
}

/// 64 bytes of four two-bit digits, then the scale. Digit `l` of 32 bytes makes 32 consecutive values.
#[inline(always)]
pub(super) fn tq2_0(block: &[u8; 66], out: &mut [f32; 256]) {
    let quants = bytes::<0, 64, _>(block);
    let d = half::<64, _>(block);
    for (run, quants) in quants.as_chunks::<32>().0.iter().enumerate() {
        for digit in 0..4 {
            for (out, q) in part_mut::<32, _>(out, 128 * run + 32 * digit).iter_mut().zip(*quants) {
                *out = level((q >> (2 * digit)) & 3) * d;
            }
        }
    }
}

/// 48 bytes of five base-3 digits, 4 bytes of four, then the scale.
#[inline(always)]
pub(super) fn tq1_0(block: &[u8; 54], out: &mut [f32; 256]) {
    let d = half::<52, _>(block);
    ternary_run::<32>(bytes::<0, 32, _>(block), d, part_mut::<160, _>(out, 0));
    ternary_run::<16>(bytes::<32, 16, _>(block), d, part_mut::<80, _>(out, 160));
    ternary_run::<4>(bytes::<48, 4, _>(block), d, part_mut::<16, _>(out, 240));
}

/// Values from base-3 digits: the first digit of every byte, then the second of every byte, and so on.
///
/// A byte holds its digits as a fixed-point fraction: multiplying by three brings the next one above the
/// point.
#[inline(always)]
fn ternary_run<const BYTES: usize>(packed: &[u8; BYTES], d: f32, out: &mut [f32]) {
    let mut fraction = *packed;
    for out in out.as_chunks_mut::<BYTES>().0 {
        for (out, fraction) in out.iter_mut().zip(&mut fraction) {
            let tripled = u16::from(*fraction) * 3;
            *out = level((tripled >> 8) as u8) * d;
            *fraction = tripled as u8;
        }
    }
}

/// Quants count from −1.
#[inline(always)]
fn level(q: u8) -> f32 {
    f32::from(q as i8 - 1)
}
