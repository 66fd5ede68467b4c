//! Kernels for WebAssembly with 128-bit vectors. A module either has these instructions or it does not load, so nothing is
//! detected at run time: a build with `-Ctarget-feature=+simd128` uses this table.
//!
//! With `+relaxed-simd` too, unsigned weights are multiplied by the relaxed byte product. That is exact only if one operand
//! has at most seven bits, which unsigned quants do; signed quants may be -128, and are widened as without it.

#![expect(unsafe_code, reason = "vectors are loaded through pointers")]

use std::arch::wasm32::*;

use super::{Instructions, Kernels, table};
use crate::{activations::QuantRow, unpack::Unpacked};

pub(super) static KERNELS: Kernels =
    table!(if cfg!(target_feature = "relaxed-simd") { "relaxed-simd" } else { "simd128" }, Simd128, []);

/// 128-bit vectors.
struct Simd128;

impl Instructions for Simd128 {
    // `mul_add` would be a slow call here.
    const FUSED: bool = false;

    #[inline(always)]
    fn widen(halves: &[u16; 8]) -> [f32; 8] {
        let mut out = [0.0; 8];
        // SAFETY: sixteen bytes are read and 32 written, all in bounds.
        unsafe {
            let halves = v128_load(halves.as_ptr().cast());
            v128_store(out.as_mut_ptr().cast(), widen_four(u32x4_extend_low_u16x8(halves)));
            v128_store(out.as_mut_ptr().add(4).cast(), widen_four(u32x4_extend_high_u16x8(halves)));
        }
        out
    }

    /// Four groups at a time. The four lanes of a whole sum belong to one group, so each vector is multiplied with one scale.
    #[inline(always)]
    fn products<const N: usize, const SIGNED: bool>(weights: &Unpacked, x: [QuantRow<'_>; N]) -> [f32; N] {
        const STEP: usize = 64;
        let steps = weights.quants.len() / STEP;
        for x in &x {
            assert!(x.quants.len() == weights.quants.len() && x.scales.len() == weights.scales.len());
            assert!(x.sums.len() == weights.minimums.len() && x.sums.len() == x.scales.len());
        }
        assert!(weights.scales.len() == 4 * steps && weights.minimums.len() == 4 * steps);
        let mut sums = [f32x4_splat(0.0); N];
        for step in 0..steps {
            // SAFETY: every slice has `steps` times as many elements as one step reads, as was just checked.
            unsafe {
                let scales = v128_load(weights.scales.as_ptr().add(4 * step).cast());
                let mut both = [scales; N];
                for n in 0..N {
                    both[n] = f32x4_mul(scales, v128_load(x[n].scales.as_ptr().add(4 * step).cast()));
                    if !SIGNED {
                        let minimums = v128_load(weights.minimums.as_ptr().add(4 * step).cast());
                        let own = v128_load(x[n].sums.as_ptr().add(4 * step).cast());
                        sums[n] = subtract_product(minimums, own, sums[n]);
                    }
                }
                group::<N, SIGNED, 0>(weights, &x, STEP * step, &both, &mut sums);
                group::<N, SIGNED, 1>(weights, &x, STEP * step, &both, &mut sums);
                group::<N, SIGNED, 2>(weights, &x, STEP * step, &both, &mut sums);
                group::<N, SIGNED, 3>(weights, &x, STEP * step, &both, &mut sums);
            }
        }
        sums.map(|sums| {
            let two = f32x4_add(sums, i32x4_shuffle::<2, 3, 2, 3>(sums, sums));
            f32x4_extract_lane::<0>(two) + f32x4_extract_lane::<1>(two)
        })
    }
}

/// Widens four half floats, each in a lane of 32 bits.
///
/// Exponents differ by 112, which a product corrects for numbers of every size. Those of infinity and NaN become the largest.
#[inline(always)]
fn widen_four(halves: v128) -> v128 {
    const DIFFERENCE: f32 = f32::from_bits((127 + 112) << 23);
    let magnitudes = v128_and(halves, u32x4_splat(0x7fff));
    let scaled = f32x4_mul(u32x4_shl(magnitudes, 13), f32x4_splat(DIFFERENCE));
    let endless = u32x4_gt(magnitudes, u32x4_splat(0x7bff));
    let exponents = v128_and(endless, u32x4_splat(f32::INFINITY.to_bits()));
    let signs = u32x4_shl(v128_and(halves, u32x4_splat(0x8000)), 16);
    v128_or(v128_or(scaled, exponents), signs)
}

/// Adds the products of group `GROUP` of those that begin at value `at`.
///
/// # Safety
///
/// All rows have 64 values from `at` on.
#[inline(always)]
unsafe fn group<const N: usize, const SIGNED: bool, const GROUP: usize>(
    weights: &Unpacked,
    x: &[QuantRow<'_>; N],
    at: usize,
    scales: &[v128; N],
    sums: &mut [v128; N],
) {
    let at = at + 16 * GROUP;
    // SAFETY: the caller has checked the lengths.
    let (weight, quants) =
        unsafe { (weights.quants.as_ptr().add(at), x.each_ref().map(|x| x.quants.as_ptr().add(at))) };
    for n in 0..N {
        // SAFETY: sixteen bytes follow both pointers.
        let fours = unsafe { fours::<SIGNED>(weight, quants[n]) };
        let scale = match GROUP {
            0 => i32x4_shuffle::<0, 0, 0, 0>(scales[n], scales[n]),
            1 => i32x4_shuffle::<1, 1, 1, 1>(scales[n], scales[n]),
            2 => i32x4_shuffle::<2, 2, 2, 2>(scales[n], scales[n]),
            _ => i32x4_shuffle::<3, 3, 3, 3>(scales[n], scales[n]),
        };
        sums[n] = add_product(f32x4_convert_i32x4(fours), scale, sums[n]);
    }
}

/// The sums of four products each, of a group of weights with a group of activations.
///
/// # Safety
///
/// Both pointers are followed by sixteen bytes.
#[inline(always)]
unsafe fn fours<const SIGNED: bool>(weights: *const u8, x: *const i8) -> v128 {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(target_feature = "relaxed-simd")]
        if !SIGNED {
            let (weights, x) = (v128_load(weights.cast()), v128_load(x.cast()));
            return i32x4_relaxed_dot_i8x16_i7x16_add(x, weights, i32x4_splat(0));
        }
        // Unsigned weights are below 128, so they may be widened as signed ones.
        let low = (i16x8_load_extend_i8x8(weights.cast()), i16x8_load_extend_i8x8(x));
        let high = (i16x8_load_extend_i8x8(weights.add(8).cast()), i16x8_load_extend_i8x8(x.add(8)));
        i32x4_add(i32x4_dot_i16x8(low.0, low.1), i32x4_dot_i16x8(high.0, high.1))
    }
}

#[cfg(target_feature = "relaxed-simd")]
#[inline(always)]
fn add_product(a: v128, b: v128, sum: v128) -> v128 {
    f32x4_relaxed_madd(a, b, sum)
}

#[cfg(not(target_feature = "relaxed-simd"))]
#[inline(always)]
fn add_product(a: v128, b: v128, sum: v128) -> v128 {
    f32x4_add(f32x4_mul(a, b), sum)
}

#[cfg(target_feature = "relaxed-simd")]
#[inline(always)]
fn subtract_product(a: v128, b: v128, sum: v128) -> v128 {
    f32x4_relaxed_nmadd(a, b, sum)
}

#[cfg(not(target_feature = "relaxed-simd"))]
#[inline(always)]
fn subtract_product(a: v128, b: v128, sum: v128) -> v128 {
    f32x4_sub(sum, f32x4_mul(a, b))
}
