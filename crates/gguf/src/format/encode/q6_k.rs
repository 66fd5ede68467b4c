//! Q6_K: sixteen sub-blocks of 16 quants from −32 to 31, each with a signed eight-bit scale.
//!
//! `x ≈ d · scale · q`. First each sub-block finds the step it would like, then the largest of them becomes
//! −128 and fixes `d`, and last each sub-block tries the eight scales around its wish.

use super::search::{LANES, Lanes, best, clamped, in_memory, lanes, sums, symmetric_scale};
use super::{finite, inverse_or_zero, nearest_byte, round, stored_scale};

const SUB_BLOCK: usize = 16;
const RANGE: [f32; 2] = [-32.0, 31.0];
const SCALES: [f32; 2] = [-128.0, 127.0];

/// Where on the quants' scale to put the value of largest magnitude: around the end of the longer side.
const PEAKS: [Lanes; 2] = [
    [-34.0, -33.75, -33.5, -33.25, -33.0, -32.75, -32.5, -32.25],
    [-32.0, -31.75, -31.5, -31.25, -31.0, -30.75, -30.5, -30.25],
];

#[inline(always)]
pub(in super::super) fn q6_k(values: &[f32; 256], out: &mut [u8; 210]) {
    let values = finite(values);
    let sub_blocks = values.as_chunks::<SUB_BLOCK>().0;

    let mut steps = [0.0f32; 16];
    let mut largest = 0.0f32;
    for (step, values) in steps.iter_mut().zip(sub_blocks) {
        *step = symmetric_scale(values, &PEAKS, RANGE);
        largest = if step.abs() > largest.abs() { *step } else { largest };
    }
    let (d, bits) = stored_scale(largest / SCALES[0]);

    let mut quants = [0; 256];
    for (k, values) in sub_blocks.iter().enumerate() {
        let scale = nearest_scale(values, steps[k], d);
        out[192 + k] = nearest_byte(scale);
        let inverse = inverse_or_zero(d * scale);
        for (q, value) in quants[SUB_BLOCK * k..].iter_mut().zip(values) {
            *q = nearest_byte(clamped(value * inverse, RANGE[0], RANGE[1]) + 32.0);
        }
    }
    out[208..].copy_from_slice(&bits.to_le_bytes());
    pack(&quants, out);
}

/// The scale that serves the values best, among eight around the wished step.
#[inline(always)]
fn nearest_scale(values: &[f32; SUB_BLOCK], step: f32, d: f32) -> f32 {
    let nearest = round(clamped(step * inverse_or_zero(d), SCALES[0], SCALES[1]));
    let scales = lanes(|lane| clamped(nearest + lane as f32 - 3.0, SCALES[0], SCALES[1]));
    let inverse = lanes(|lane| inverse_or_zero(d * scales[lane]));
    let sums = sums(values, &inverse, &[0.0; LANES], RANGE);
    // By how much each scale lowers the squared error from that of all zeros.
    let gain = in_memory(lanes(|lane| {
        let step = d * scales[lane];
        step * (2.0 * sums.qx[lane] - step * sums.qq[lane])
    }));
    scales[best(&gain)]
}

/// Lays out 256 six-bit quants: low nibbles and high bit pairs as the decoder in `k_quants` describes.
#[inline(always)]
fn pack(quants: &[u8; 256], out: &mut [u8; 210]) {
    let (low, rest) = out.split_at_mut(128);
    let halves = quants.as_chunks::<128>().0.iter();
    for ((quants, low), high) in halves.zip(low.as_chunks_mut::<64>().0).zip(rest.as_chunks_mut::<32>().0) {
        for i in 0..32 {
            let [a, b, c, d] = [quants[i], quants[i + 32], quants[i + 64], quants[i + 96]];
            low[i] = (a & 15) | (c << 4);
            low[i + 32] = (b & 15) | (d << 4);
            high[i] = (a >> 4) | ((b >> 4) << 2) | ((c >> 4) << 4) | ((d >> 4) << 6);
        }
    }
}
