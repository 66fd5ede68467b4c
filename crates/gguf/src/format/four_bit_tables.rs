//! Four-bit formats whose codes name a value of a table: IQ4 (a fixed curve) and the four-bit floats.

use super::layout::{bytes, half, part, part_mut, words};

/// The levels of IQ4_NL and IQ4_XS: denser around zero, where weights are.
const CURVE: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// Twice the values of an E2M1 float, which makes them whole numbers. The sign is bit 3; both zeros are zero.
const FLOAT4: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// One scale, 16 bytes of nibbles.
#[inline(always)]
pub(super) fn iq4_nl(block: &[u8; 18], out: &mut [f32; 32]) {
    look_up(half::<0, _>(block), &CURVE, bytes::<2, 16, _>(block), out);
}

/// One half float, eight six-bit scales in two parts, 128 bytes of nibbles in runs of 16.
#[inline(always)]
pub(super) fn iq4_xs(block: &[u8; 136], out: &mut [f32; 256]) {
    let d = half::<0, _>(block);
    let [scales_high] = words::<2, 1, _>(block);
    let scales_low = bytes::<4, 4, _>(block);
    let quants = bytes::<8, 128, _>(block);
    for sub_block in 0..8 {
        let low = (scales_low[sub_block / 2] >> (4 * (sub_block % 2))) & 15;
        let high = (scales_high >> (2 * sub_block)) & 3;
        let scale = d * (f32::from(u16::from(low) | (high << 4)) - 32.0);
        look_up(scale, &CURVE, part::<16, _>(quants, 16 * sub_block), part_mut::<32, _>(out, 32 * sub_block));
    }
}

/// One E8M0 exponent, 16 bytes of nibbles.
#[inline(always)]
pub(super) fn mxfp4(block: &[u8; 17], out: &mut [f32; 32]) {
    look_up(half_of_e8m0(block[0]), &FLOAT4, bytes::<1, 16, _>(block), out);
}

/// Four E4M3 scales, then for each of them 8 bytes of nibbles.
#[inline(always)]
pub(super) fn nvfp4(block: &[u8; 36], out: &mut [f32; 64]) {
    let scales = bytes::<0, 4, _>(block);
    let quants = bytes::<4, 32, _>(block);
    for (sub_block, &scale) in scales.iter().enumerate() {
        let scale = half_of_e4m3(scale);
        look_up(scale, &FLOAT4, part::<8, _>(quants, 8 * sub_block), part_mut::<16, _>(out, 16 * sub_block));
    }
}

/// Low nibbles fill the first half of `out`, high nibbles the second.
#[inline(always)]
fn look_up<const BYTES: usize, const LEN: usize>(
    scale: f32,
    table: &[i8; 16],
    quants: &[u8; BYTES],
    out: &mut [f32; LEN],
) {
    const { assert!(LEN == 2 * BYTES) };
    // Sixteen products serve all the values of the block.
    let scaled = table.map(|level| scale * f32::from(level));
    let (first, second) = out.split_at_mut(BYTES);
    for ((first, second), &q) in first.iter_mut().zip(second).zip(quants) {
        *first = scaled[usize::from(q & 15)];
        *second = scaled[usize::from(q >> 4)];
    }
}

/// Half of `2^(e − 127)`: the table's values are doubled.
#[inline(always)]
fn half_of_e8m0(e: u8) -> f32 {
    // The two smallest lie below the normal numbers, where the exponent field is zero.
    f32::from_bits(if e < 2 { 0x20_0000 << e } else { (u32::from(e) - 1) << 23 })
}

/// Half of an unsigned E4M3 float. Its one NaN pattern counts as zero, as in ggml.
#[inline(always)]
fn half_of_e4m3(bits: u8) -> f32 {
    let (exponent, fraction) = ((bits >> 3) & 15, f32::from(bits & 7));
    // Both powers of two, halved, with the fraction's eighths drawn in.
    const SUBNORMAL: f32 = 1.0 / 1024.0;
    match bits {
        0x7f => 0.0,
        _ if exponent == 0 => fraction * SUBNORMAL,
        _ => (8.0 + fraction) * f32::from_bits((u32::from(exponent) + 127 - 7 - 4) << 23),
    }
}
