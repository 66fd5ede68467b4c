//! Kernels for x86-64 processors with AVX2, and for those with the byte products of AVX-512 VNNI.

#![expect(
    unsafe_code,
    reason = "intrinsics are unsafe to call outside of functions with their target features"
)]

use std::arch::x86_64::*;

use super::{Instructions, Kernels, table};
use crate::{activations::QuantRow, unpack::Unpacked};

static AVX2: Kernels = table!("avx2", Avx2, ["avx2,fma,f16c"]);
static AVX512: Kernels =
    table!("avx512-vnni", Avx512, ["avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni"]);

/// The tables that this processor can run, the fastest first.
pub(super) fn available() -> Vec<&'static Kernels> {
    let mut all = Vec::new();
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vnni");
    if avx2 && avx512 {
        all.push(&AVX512);
    }
    if avx2 {
        all.push(&AVX2);
    }
    all
}

/// The group of each lane of byte products, which have four values each.
static LANE_GROUPS: [i32; 64] = {
    let mut groups = [0; 64];
    let mut lane = 0;
    while lane < 64 {
        groups[lane] = lane as i32 / 4;
        lane += 1;
    }
    groups
};

/// AVX2 with fused products and half floats.
struct Avx2;

/// The same and AVX-512 with byte products.
struct Avx512;

/// Widens eight half floats. Called only from functions that are compiled for F16C.
#[inline(always)]
fn widen(halves: &[u16; 8]) -> [f32; 8] {
    let mut out = [0.0; 8];
    // SAFETY: F16C and AVX are there, as the comment above says; sixteen bytes are read and 32 written, all in bounds.
    unsafe {
        let halves = _mm_loadu_si128(halves.as_ptr().cast());
        _mm256_storeu_ps(out.as_mut_ptr(), _mm256_cvtph_ps(halves));
    }
    out
}

impl Instructions for Avx2 {
    const FUSED: bool = true;

    #[inline(always)]
    fn widen(halves: &[u16; 8]) -> [f32; 8] {
        widen(halves)
    }

    /// Eight groups at a time. The eight lanes of a product are those of two groups, so each vector of whole sums is
    /// multiplied with two scales, four times each.
    #[inline(always)]
    fn products<const N: usize, const SIGNED: bool>(weights: &Unpacked, x: [QuantRow<'_>; N]) -> [f32; N] {
        const STEP: usize = 128;
        let steps = weights.quants.len() / STEP;
        for x in &x {
            assert!(x.quants.len() == weights.quants.len() && x.scales.len() == weights.scales.len());
            assert!(x.sums.len() == weights.minimums.len() && x.sums.len() == x.scales.len());
        }
        assert!(weights.scales.len() == 8 * steps && weights.minimums.len() == 8 * steps);
        // SAFETY: this is called only from functions that are compiled for AVX2 and FMA. Every slice has `steps` times as
        // many elements as one step reads, as was just checked.
        unsafe {
            let mut pairs = [_mm256_setzero_si256(); 4];
            for (pair, groups) in pairs.iter_mut().zip(LANE_GROUPS.as_chunks::<8>().0) {
                *pair = _mm256_loadu_si256(groups.as_ptr().cast());
            }
            let ones = _mm256_set1_epi16(1);
            let mut sums = [_mm256_setzero_ps(); N];
            for step in 0..steps {
                let scales = _mm256_loadu_ps(weights.scales.as_ptr().add(8 * step));
                let mut both = [scales; N];
                for n in 0..N {
                    both[n] = _mm256_mul_ps(scales, _mm256_loadu_ps(x[n].scales.as_ptr().add(8 * step)));
                    if !SIGNED {
                        let minimums = _mm256_loadu_ps(weights.minimums.as_ptr().add(8 * step));
                        let own = _mm256_loadu_ps(x[n].sums.as_ptr().add(8 * step));
                        sums[n] = _mm256_fnmadd_ps(minimums, own, sums[n]);
                    }
                }
                for part in 0..4 {
                    let at = STEP * step + 32 * part;
                    let weight = _mm256_loadu_si256(weights.quants.as_ptr().add(at).cast());
                    for n in 0..N {
                        let quants = _mm256_loadu_si256(x[n].quants.as_ptr().add(at).cast());
                        // The instruction takes unsigned and signed bytes: the sign of a weight moves to the activation.
                        // Two products of at most 128 · 127 do not overflow 16 bits.
                        let twos = match SIGNED {
                            false => _mm256_maddubs_epi16(weight, quants),
                            true => _mm256_maddubs_epi16(
                                _mm256_abs_epi8(weight),
                                _mm256_sign_epi8(quants, weight),
                            ),
                        };
                        let fours = _mm256_cvtepi32_ps(_mm256_madd_epi16(twos, ones));
                        let scale = _mm256_permutevar8x32_ps(both[n], pairs[part]);
                        sums[n] = _mm256_fmadd_ps(fours, scale, sums[n]);
                    }
                }
            }
            let mut totals = [0.0; N];
            for n in 0..N {
                let four = _mm_add_ps(_mm256_castps256_ps128(sums[n]), _mm256_extractf128_ps::<1>(sums[n]));
                let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
                totals[n] = _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)));
            }
            totals
        }
    }
}

impl Instructions for Avx512 {
    const FUSED: bool = true;

    #[inline(always)]
    fn widen(halves: &[u16; 8]) -> [f32; 8] {
        widen(halves)
    }

    /// Sixteen groups at a time. The sixteen lanes of a product are those of four groups, so each vector of whole sums is
    /// multiplied with four scales, four times each.
    #[inline(always)]
    fn products<const N: usize, const SIGNED: bool>(weights: &Unpacked, x: [QuantRow<'_>; N]) -> [f32; N] {
        const STEP: usize = 256;
        let steps = weights.quants.len() / STEP;
        for x in &x {
            assert!(x.quants.len() == weights.quants.len() && x.scales.len() == weights.scales.len());
            assert!(x.sums.len() == weights.minimums.len() && x.sums.len() == x.scales.len());
        }
        assert!(weights.scales.len() == 16 * steps && weights.minimums.len() == 16 * steps);
        // SAFETY: this is called only from functions that are compiled for these parts of AVX-512. Every slice has
        // `steps` times as many elements as one step reads, as was just checked.
        unsafe {
            let mut quads = [_mm512_setzero_si512(); 4];
            for (quad, groups) in quads.iter_mut().zip(LANE_GROUPS.as_chunks::<16>().0) {
                *quad = _mm512_loadu_si512(groups.as_ptr().cast());
            }
            let zero = _mm512_setzero_si512();
            let mut sums = [_mm512_setzero_ps(); N];
            for step in 0..steps {
                let scales = _mm512_loadu_ps(weights.scales.as_ptr().add(16 * step));
                let mut both = [scales; N];
                for n in 0..N {
                    both[n] = _mm512_mul_ps(scales, _mm512_loadu_ps(x[n].scales.as_ptr().add(16 * step)));
                    if !SIGNED {
                        let minimums = _mm512_loadu_ps(weights.minimums.as_ptr().add(16 * step));
                        let own = _mm512_loadu_ps(x[n].sums.as_ptr().add(16 * step));
                        sums[n] = _mm512_fnmadd_ps(minimums, own, sums[n]);
                    }
                }
                for part in 0..4 {
                    let at = STEP * step + 64 * part;
                    let weight = _mm512_loadu_si512(weights.quants.as_ptr().add(at).cast());
                    // The instruction takes unsigned and signed bytes: the sign of a weight moves to the activation.
                    let negative = if SIGNED { _mm512_movepi8_mask(weight) } else { 0 };
                    let weight = if SIGNED { _mm512_abs_epi8(weight) } else { weight };
                    for n in 0..N {
                        let mut quants = _mm512_loadu_si512(x[n].quants.as_ptr().add(at).cast());
                        if SIGNED {
                            quants = _mm512_mask_sub_epi8(quants, negative, zero, quants);
                        }
                        let fours = _mm512_cvtepi32_ps(_mm512_dpbusd_epi32(zero, weight, quants));
                        let scale = _mm512_permutexvar_ps(quads[part], both[n]);
                        sums[n] = _mm512_fmadd_ps(fours, scale, sums[n]);
                    }
                }
            }
            let mut totals = [0.0; N];
            for n in 0..N {
                totals[n] = _mm512_reduce_add_ps(sums[n]);
            }
            totals
        }
    }
}
