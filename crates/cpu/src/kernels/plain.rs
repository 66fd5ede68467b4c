//! Loops in plain Rust, written so that the compiler vectorises them. Sums are kept in a fixed number of lanes and in a
//! fixed order: a row's result never depends on the rows beside it.

use super::{AT_ONCE, Instructions};
use crate::{activations::QuantRow, float, unpack::Unpacked};

/// Sums side by side: four vectors of eight.
const LANES: usize = 32;

#[inline(always)]
pub(super) fn products<I: Instructions>(weights: &Unpacked, x: &[QuantRow<'_>], out: &mut [f32]) {
    match (weights.signed, x) {
        (false, &[a]) => out.copy_from_slice(&I::products::<1, false>(weights, [a])),
        (true, &[a]) => out.copy_from_slice(&I::products::<1, true>(weights, [a])),
        (false, &[a, b, c, d]) => out.copy_from_slice(&I::products::<AT_ONCE, false>(weights, [a, b, c, d])),
        (true, &[a, b, c, d]) => out.copy_from_slice(&I::products::<AT_ONCE, true>(weights, [a, b, c, d])),
        (signed, few) => {
            for (&x, out) in few.iter().zip(out) {
                [*out] = match signed {
                    false => I::products::<1, false>(weights, [x]),
                    true => I::products::<1, true>(weights, [x]),
                };
            }
        }
    }
}

#[inline(always)]
fn fused<I: Instructions>(a: f32, b: f32, sum: f32) -> f32 {
    if I::FUSED { a.mul_add(b, sum) } else { a * b + sum }
}

#[inline(always)]
pub(super) fn float_products<I: Instructions>(weights: &[f32], x: &[&[f32]], out: &mut [f32]) {
    for (x, out) in x.iter().zip(out) {
        *out = product::<I>(weights, x);
    }
}

#[inline(always)]
fn product<I: Instructions>(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] = fused::<I>(a[lane], b[lane], sums[lane]);
        }
    }
    let mut rest = 0.0;
    for (&a, &b) in a_rest.iter().zip(b_rest) {
        rest = fused::<I>(a, b, rest);
    }
    total(sums) + rest
}

/// The sum of all lanes, by halves.
#[inline(always)]
fn total(sums: [f32; LANES]) -> f32 {
    let sixteen: [f32; 16] = std::array::from_fn(|i| sums[i] + sums[i + 16]);
    let eight: [f32; 8] = std::array::from_fn(|i| sixteen[i] + sixteen[i + 8]);
    let four: [f32; 4] = std::array::from_fn(|i| eight[i] + eight[i + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

#[inline(always)]
pub(super) fn half_product<I: Instructions>(a: &[f32], b: &[u16]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for (part, b) in b.as_chunks::<8>().0.iter().enumerate() {
            let b = I::widen(b);
            for lane in 0..8 {
                let at = 8 * part + lane;
                sums[at] = fused::<I>(a[at], b[lane], sums[at]);
            }
        }
    }
    let mut rest = 0.0;
    for (&a, &b) in a_rest.iter().zip(b_rest) {
        rest = fused::<I>(a, float::half_to_f32(b), rest);
    }
    total(sums) + rest
}

#[inline(always)]
pub(super) fn decode_halves<I: Instructions>(halves: &[u8], out: &mut [f32]) {
    let (halves, halves_rest) = halves.as_chunks::<16>();
    let (out, out_rest) = out.as_chunks_mut::<8>();
    for (halves, out) in halves.iter().zip(out) {
        let halves: &[[u8; 2]] = halves.as_chunks().0;
        *out = I::widen(&std::array::from_fn(|i| u16::from_le_bytes(halves[i])));
    }
    for (half, out) in halves_rest.as_chunks().0.iter().zip(out_rest) {
        *out = float::half_to_f32(u16::from_le_bytes(*half));
    }
}

#[inline(always)]
pub(super) fn add_scaled<I: Instructions>(out: &mut [f32], by: f32, x: &[f32]) {
    for (out, &x) in out.iter_mut().zip(x) {
        *out = fused::<I>(by, x, *out);
    }
}

#[inline(always)]
pub(super) fn add_scaled_halves<I: Instructions>(out: &mut [f32], by: f32, x: &[u16]) {
    let ((x, x_rest), (out, out_rest)) = (x.as_chunks::<8>(), out.as_chunks_mut::<8>());
    for (x, out) in x.iter().zip(out) {
        let x = I::widen(x);
        for lane in 0..8 {
            out[lane] = fused::<I>(by, x[lane], out[lane]);
        }
    }
    for (&x, out) in x_rest.iter().zip(out_rest) {
        *out = fused::<I>(by, float::half_to_f32(x), *out);
    }
}

/// Scores reach hundreds, so the largest is taken off first.
#[inline(always)]
pub(super) fn softmax(scores: &mut [f32]) {
    let mut lanes = [f32::NEG_INFINITY; 8];
    for scores in scores.chunks(8) {
        for (lane, &score) in lanes.iter_mut().zip(scores) {
            *lane = if *lane > score { *lane } else { score };
        }
    }
    let most = lanes.into_iter().fold(f32::NEG_INFINITY, f32::max);
    let mut sums = [0.0; 8];
    for scores in scores.chunks_mut(8) {
        for (sum, score) in sums.iter_mut().zip(scores) {
            *score = float::exp(*score - most);
            *sum += *score;
        }
    }
    let share = 1.0 / sums.into_iter().sum::<f32>();
    for score in scores {
        *score *= share;
    }
}

#[inline(always)]
pub(super) fn gelu_mul(gate: &[f32], up: &[f32], out: &mut [f32]) {
    for ((gate, up), out) in gate.iter().zip(up).zip(out) {
        *out = float::gelu(*gate) * up;
    }
}

#[inline(always)]
pub(super) fn rms_norm(x: &[f32], weight: Option<&[f32]>, eps: f32, out: &mut [f32]) {
    // In double precision, because squares of large values would swallow small ones.
    let (chunks, rest) = x.as_chunks::<16>();
    let mut sums = [0.0f64; 16];
    for chunk in chunks {
        for lane in 0..16 {
            sums[lane] += f64::from(chunk[lane]) * f64::from(chunk[lane]);
        }
    }
    let mut squares: f64 = sums.into_iter().sum();
    for &value in rest {
        squares += f64::from(value) * f64::from(value);
    }
    let mean = (squares / x.len() as f64) as f32;
    // A mean that overflows would turn the whole group into zeros, and nothing would show it.
    let scale = if mean.is_finite() { 1.0 / (mean + eps).sqrt() } else { f32::NAN };
    match weight {
        Some(weight) => {
            for ((out, x), weight) in out.iter_mut().zip(x).zip(weight) {
                *out = x * scale * weight;
            }
        }
        None => {
            for (out, x) in out.iter_mut().zip(x) {
                *out = x * scale;
            }
        }
    }
}

/// Magnitudes are compared as integers, where infinity and NaN are the largest; only then is the first one looked for.
#[inline(always)]
pub(super) fn not_finite(x: &[f32]) -> Option<usize> {
    const INFINITY: u32 = f32::INFINITY.to_bits();
    let mut largest = 0;
    for value in x {
        largest = largest.max(value.to_bits() & 0x7fff_ffff);
    }
    if largest < INFINITY { None } else { x.iter().position(|value| !value.is_finite()) }
}
