//! Half and bfloat16 to f32 and back.
//!
//! These are straight-line integer code without branches or calls, because they sit inside loops that must
//! vectorise. The tests compare them with the `half` crate over every 16-bit pattern.

/// The value of an IEEE half float. Exact; NaN stays NaN.
#[inline(always)]
pub(super) const fn half_to_f32(bits: u16) -> f32 {
    const EXPONENT: u32 = 0x7c00 << 13;
    // What moves an exponent biased by 15 to one biased by 127.
    const REBIAS: u32 = (127 - 15) << 23;
    const SMALLEST_NORMAL: f32 = f32::from_bits(REBIAS + (1 << 23));

    let sign = ((bits & 0x8000) as u32) << 16;
    let shifted = ((bits & 0x7fff) as u32) << 13;
    let exponent = shifted & EXPONENT;
    let normal = shifted + REBIAS;
    // Infinity and NaN: the exponent field becomes all ones.
    let special = normal + REBIAS;
    // Subnormal: give the fraction an implicit one, then take that one away again.
    let subnormal = (f32::from_bits(normal + (1 << 23)) - SMALLEST_NORMAL).to_bits();
    let magnitude = if exponent == EXPONENT {
        special
    } else if exponent == 0 {
        subnormal
    } else {
        normal
    };
    f32::from_bits(sign | magnitude)
}

/// The nearest half float, ties to even. Beyond the range it is infinity; NaN stays NaN.
#[inline(always)]
pub(super) const fn f32_to_half(value: f32) -> u16 {
    const INFINITY: u32 = f32::INFINITY.to_bits();
    // From here on every magnitude rounds to infinity.
    const OVERFLOW: u32 = ((15 + 1) + 127) << 23;
    const SMALLEST_NORMAL: u32 = (127 - 14) << 23;
    // In the binade of this number the last bit of an f32 has the weight of the last bit of a subnormal half.
    const ROUNDER: f32 = f32::from_bits((127 - 24 + 23) << 23);

    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    let odd = (magnitude >> 13) & 1;
    // Wraps only for magnitudes that the overflow branch takes.
    let normal = magnitude.wrapping_sub((127 - 15) << 23).wrapping_add(0xfff + odd) >> 13;
    let subnormal = (f32::from_bits(magnitude) + ROUNDER).to_bits().wrapping_sub(ROUNDER.to_bits());
    let rounded = if magnitude > INFINITY {
        0x7e00
    } else if magnitude >= OVERFLOW {
        0x7c00
    } else if magnitude < SMALLEST_NORMAL {
        subnormal
    } else {
        normal
    };
    sign | rounded as u16
}

/// The value of a bfloat16: the upper half of an f32.
#[inline(always)]
pub(super) const fn bfloat_to_f32(bits: u16) -> f32 {
    f32::from_bits((bits as u32) << 16)
}

/// The nearest bfloat16, ties to even. NaN stays NaN.
#[inline(always)]
pub(super) const fn f32_to_bfloat(value: f32) -> u16 {
    let bits = value.to_bits();
    let odd = (bits >> 16) & 1;
    let rounded = (bits.wrapping_add(0x7fff + odd) >> 16) as u16;
    // Rounding could carry a NaN's fraction into the sign; setting the quiet bit keeps it one.
    let quiet = (bits >> 16) as u16 | 0x40;
    if value.is_nan() { quiet } else { rounded }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;

    fn same(a: f32, b: f32) -> bool {
        a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
    }

    #[test]
    fn every_pattern_widens_as_in_the_half_crate() {
        for bits in 0..=u16::MAX {
            assert!(same(half_to_f32(bits), f16::from_bits(bits).to_f32()), "half {bits:#06x}");
            assert!(same(bfloat_to_f32(bits), bf16::from_bits(bits).to_f32()), "bfloat {bits:#06x}");
        }
    }

    /// Around every 16-bit value, its midpoints to the neighbours and one ulp beside them.
    #[test]
    fn narrowing_rounds_as_in_the_half_crate() {
        for bits in 0..=u16::MAX {
            for widened in [half_to_f32(bits), bfloat_to_f32(bits)] {
                for offset in [0, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0x1_0000] {
                    for value in [
                        f32::from_bits(widened.to_bits().wrapping_add(offset)),
                        f32::from_bits(widened.to_bits().wrapping_sub(offset)),
                    ] {
                        let (half, bfloat) = (f32_to_half(value), f32_to_bfloat(value));
                        assert!(same(half_to_f32(half), f16::from_f32(value).to_f32()), "half of {value:e}");
                        assert!(
                            same(bfloat_to_f32(bfloat), bf16::from_f32(value).to_f32()),
                            "bfloat of {value:e}"
                        );
                    }
                }
            }
        }
    }
}
