//! Loops in plain Rust, written so that the compiler vectorises them.

use rullama_graph::Activation;

use crate::float;

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

/// NaN where `x` is infinite: the cap would make it an ordinary number, and nothing would show that it was none.
#[inline(always)]
pub(super) fn soft_cap(x: &[f32], cap: f32, out: &mut [f32]) {
    let by = 2.0 / cap;
    for (x, out) in x.iter().zip(out) {
        // The hyperbolic tangent by the logistic function.
        let value = cap - 2.0 * cap / (1.0 + float::exp(x * by));
        *out = if x.is_finite() { value } else { f32::NAN };
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

/// The mean is taken off before squares are added up: they would lose what makes values differ.
#[inline(always)]
pub(super) fn layer_norm(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let (chunks, rest) = x.as_chunks::<16>();
    let mut sums = [0.0f64; 16];
    for chunk in chunks {
        for lane in 0..16 {
            sums[lane] += f64::from(chunk[lane]);
        }
    }
    let sum = sums.into_iter().sum::<f64>() + rest.iter().map(|&x| f64::from(x)).sum::<f64>();
    let mean = (sum / x.len() as f64) as f32;
    let square = |x: f32| f64::from(x - mean) * f64::from(x - mean);
    let mut squares = [0.0f64; 16];
    for chunk in chunks {
        for lane in 0..16 {
            squares[lane] += square(chunk[lane]);
        }
    }
    let squares = squares.into_iter().sum::<f64>() + rest.iter().map(|&x| square(x)).sum::<f64>();
    let variance = (squares / x.len() as f64) as f32;
    // A variance that overflows would turn the whole group into zeros, and nothing would show it.
    let scale = if variance.is_finite() { 1.0 / (variance + eps).sqrt() } else { f32::NAN };
    for ((out, x), weight) in out.iter_mut().zip(x).zip(weight) {
        *out = (x - mean) * scale * weight;
    }
}

/// NaN where `x` is infinite, as in the reference.
#[inline(always)]
pub(super) fn activate(with: Activation, x: &[f32], out: &mut [f32]) {
    let sigmoid = |x: f32| 1.0 / (1.0 + float::exp(-x));
    match with {
        Activation::Relu => each_finite(x, out, |x| x.max(0.0)),
        Activation::Sigmoid => each_finite(x, out, sigmoid),
        Activation::Silu => each_finite(x, out, |x| x * sigmoid(x)),
        Activation::QuickGelu => each_finite(x, out, |x| x * sigmoid(1.702 * x)),
    }
}

#[inline(always)]
fn each_finite(x: &[f32], out: &mut [f32], with: impl Fn(f32) -> f32) {
    for (x, out) in x.iter().zip(out) {
        let value = with(*x);
        *out = if x.is_finite() { value } else { f32::NAN };
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
