//! Floating-point functions that compilers can vectorise: no branch, no call.

/// The value of an IEEE half float. Exact; NaN and infinities stay what they are.
#[inline(always)]
pub(crate) fn half_to_f32(bits: u16) -> f32 {
    // Moves an exponent biased by 15 to one biased by 127, and gives subnormals the exponent they lack.
    const REBIAS: f32 = f32::from_bits((127 + 112) << 23);
    const SPECIAL: u32 = 0x7c00 << 13;
    let shifted = u32::from(bits & 0x7fff) << 13;
    let ordinary = (f32::from_bits(shifted) * REBIAS).to_bits();
    let magnitude = if shifted >= SPECIAL { shifted | 0x7f80_0000 } else { ordinary };
    f32::from_bits(magnitude | (u32::from(bits & 0x8000) << 16))
}

/// `e` to the power of `x`, to within two units in the last place. Beyond ±87 it stays at the value there, which is as
/// good as zero or infinity to its callers; NaN stays NaN.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Adding this number leaves the nearest whole number in the last bits of the sum.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    // ln 2 in two parts, of which the first times a whole number is exact.
    let rest = x - whole * 0.693_359_4 - whole * -2.121_944_4e-4;
    let tail = 1.987_569_1e-4;
    let tail = tail * rest + 1.398_2e-3;
    let tail = tail * rest + 8.333_452e-3;
    let tail = tail * rest + 4.166_579_6e-2;
    let tail = tail * rest + 1.666_666_5e-1;
    let tail = tail * rest + 0.5;
    let value = 1.0 + rest + rest * rest * tail;
    value * f32::from_bits(shifted.to_bits().wrapping_add(127) << 23)
}

/// The tanh form of gelu, written with the logistic function: `0.5 (1 + tanh u) = 1 / (1 + exp(−2u))`.
#[inline(always)]
pub(crate) fn gelu(x: f32) -> f32 {
    const SQRT_2_OVER_PI: f32 = 0.797_884_6;
    let u = SQRT_2_OVER_PI * x * (1.0 + 0.044_715 * x * x);
    x / (1.0 + exp(-2.0 * u))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_widens_as_the_decoder_of_files_does() {
        for bits in 0..=u16::MAX {
            let mut expected = [0.0];
            rullama_gguf::Format::F16.decode(&bits.to_le_bytes(), &mut expected).expect("one value");
            let (found, expected) = (half_to_f32(bits), expected[0]);
            let same = found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan());
            assert!(same, "{bits:#06x}: {found} for {expected}");
        }
    }

    #[test]
    fn powers_of_e_are_close() {
        for step in -870..880 {
            let x = step as f32 * 0.1;
            let error = (exp(x) / f64::from(x).exp() as f32 - 1.0).abs();
            assert!(error < 3e-7, "exp({x}) is off by {error:e}");
        }
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn known_values_of_gelu() {
        for (x, y) in [(0.0, 0.0), (1.0, 0.841_192), (-1.0, -0.158_808), (3.0, 2.996_363), (100.0, 100.0)] {
            assert!((gelu(x) - y).abs() < 1e-5, "gelu({x}) is {}", gelu(x));
        }
        assert!(gelu(-1e30).abs() < 1e-6);
        assert!(!gelu(f32::INFINITY).is_finite() && !gelu(f32::NEG_INFINITY).is_finite());
    }
}
