//! Kernels for WebAssembly with 128-bit vectors. A module either has these instructions or it does not load, so nothing is
//! detected at run time: a build with `-Ctarget-feature=+simd128` uses this table.
//!
//! With `+relaxed-simd` too, unsigned weights are multiplied by the relaxed byte product. That is exact only if one operand
//! has at most seven bits, which unsigned quants do; signed quants may be -128, and are widened as without it. Relaxed
//! sums of products are not used: whether they round once or twice may depend on the machine.

#![expect(unsafe_code, reason = "vectors are loaded through pointers")]

use std::arch::wasm32::*;

use super::{Instructions, Kernels, table};
use crate::activations::BLOCK;

pub(super) static KERNELS: Kernels =
    table!(if cfg!(target_feature = "relaxed-simd") { "relaxed-simd" } else { "simd128" }, Simd128, []);

/// 128-bit vectors.
struct Simd128;

/// Sums of four lanes: whole ones, and those of pairs of values that two neighbouring lanes have for one, first for lanes
/// 0 and 1 and then for lanes 2 and 3.
#[derive(Clone, Copy)]
struct Sums {
    whole: v128,
    pairs: [v128; 2],
}

impl Instructions for Simd128 {
    // `mul_add` would be a slow call here.
    const FUSED: bool = false;
    const LANES: usize = 4;
    const RAISES: bool = false;
    const MANY_REGISTERS: bool = false;
    type Bytes = v128;
    type Ints = Sums;
    type Floats = v128;

    #[inline(always)]
    fn group_sums<const GROUPS: usize, const SIGNED: bool>(
        weights: &[u8; BLOCK],
        x: &[i8; BLOCK],
    ) -> [i32; GROUPS] {
        let vectors = weights.as_chunks::<16>().0.iter().zip(x.as_chunks::<16>().0);
        let mut parts = [i32x4_splat(0); 16];
        for (part, (weights, x)) in parts.iter_mut().zip(vectors) {
            // SAFETY: both have sixteen bytes.
            let (weights, x) = unsafe { (v128_load(weights.as_ptr().cast()), v128_load(x.as_ptr().cast())) };
            *part = fours::<SIGNED>(weights, x);
        }
        let mut sums = [0; GROUPS];
        for (four, sums) in sums.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let each = |i: usize| match GROUPS {
                8 => i32x4_add(parts[8 * four + 2 * i], parts[8 * four + 2 * i + 1]),
                _ => parts[4 * four + i],
            };
            let total = four_sums([each(0), each(1), each(2), each(3)]);
            // SAFETY: there is room for sixteen bytes.
            unsafe { v128_store(sums.as_mut_ptr().cast(), total) };
        }
        sums
    }

    #[inline(always)]
    unsafe fn bytes(at: *const u8) -> v128 {
        // SAFETY: the caller's promise.
        unsafe { v128_load(at.cast()) }
    }

    #[inline(always)]
    unsafe fn four_bytes(at: *const i8) -> v128 {
        // SAFETY: the caller's promise.
        unsafe { v128_load32_splat(at.cast()) }
    }

    #[inline(always)]
    fn no_ints() -> Sums {
        Sums { whole: i32x4_splat(0), pairs: [i32x4_splat(0); 2] }
    }

    #[inline(always)]
    fn dot<const SIGNED: bool>(sums: Sums, weights: v128, x: v128) -> Sums {
        #[cfg(target_feature = "relaxed-simd")]
        if !SIGNED {
            return Sums { whole: i32x4_relaxed_dot_i8x16_i7x16_add(x, weights, sums.whole), ..sums };
        }
        // All lanes of `x` are the same.
        let (x, [low, high]) = (i16x8_extend_low_i8x16(x), widen::<SIGNED>(weights));
        let (low, high) = (i32x4_dot_i16x8(low, x), i32x4_dot_i16x8(high, x));
        Sums { pairs: [i32x4_add(sums.pairs[0], low), i32x4_add(sums.pairs[1], high)], ..sums }
    }

    #[inline(always)]
    fn to_floats(Sums { whole, pairs: [low, high] }: Sums) -> v128 {
        let even = i32x4_shuffle::<0, 2, 4, 6>(low, high);
        let odd = i32x4_shuffle::<1, 3, 5, 7>(low, high);
        f32x4_convert_i32x4(i32x4_add(whole, i32x4_add(even, odd)))
    }

    #[inline(always)]
    unsafe fn load(at: *const f32) -> v128 {
        // SAFETY: the caller's promise.
        unsafe { v128_load(at.cast()) }
    }

    /// Exponents differ by 112, which a product corrects for numbers of every size. Those of infinity and NaN become the
    /// largest.
    #[inline(always)]
    unsafe fn load_halves(at: *const u16) -> v128 {
        const DIFFERENCE: f32 = f32::from_bits((127 + 112) << 23);
        // SAFETY: the caller's promise.
        let halves = unsafe { u32x4_load_extend_u16x4(at) };
        let magnitudes = v128_and(halves, u32x4_splat(0x7fff));
        let scaled = f32x4_mul(u32x4_shl(magnitudes, 13), f32x4_splat(DIFFERENCE));
        let endless = u32x4_gt(magnitudes, u32x4_splat(0x7bff));
        let exponents = v128_and(endless, u32x4_splat(f32::INFINITY.to_bits()));
        let signs = u32x4_shl(v128_and(halves, u32x4_splat(0x8000)), 16);
        v128_or(v128_or(scaled, exponents), signs)
    }

    #[inline(always)]
    unsafe fn load_upper(at: *const u16) -> v128 {
        // SAFETY: the caller's promise.
        unsafe { u32x4_shl(u32x4_load_extend_u16x4(at), 16) }
    }

    #[inline(always)]
    unsafe fn store(at: *mut f32, values: v128) {
        // SAFETY: the caller's promise.
        unsafe { v128_store(at.cast(), values) }
    }

    #[inline(always)]
    fn splat(value: f32) -> v128 {
        f32x4_splat(value)
    }

    #[inline(always)]
    fn transpose(rows: [[u8; 16]; 4]) -> [[u8; 16]; 4] {
        // SAFETY: sixteen bytes are read from and written to arrays of as many.
        unsafe {
            let [a, b, c, d] = rows.map(|row| v128_load(row.as_ptr().cast()));
            let (ab, cd) = (i32x4_shuffle::<0, 4, 1, 5>(a, b), i32x4_shuffle::<0, 4, 1, 5>(c, d));
            let (ab_high, cd_high) = (i32x4_shuffle::<2, 6, 3, 7>(a, b), i32x4_shuffle::<2, 6, 3, 7>(c, d));
            let columns = [
                i64x2_shuffle::<0, 2>(ab, cd),
                i64x2_shuffle::<1, 3>(ab, cd),
                i64x2_shuffle::<0, 2>(ab_high, cd_high),
                i64x2_shuffle::<1, 3>(ab_high, cd_high),
            ];
            columns.map(|column| {
                let mut bytes = [0; 16];
                v128_store(bytes.as_mut_ptr().cast(), column);
                bytes
            })
        }
    }

    #[inline(always)]
    fn add(a: v128, b: v128) -> v128 {
        f32x4_add(a, b)
    }

    #[inline(always)]
    fn mul(a: v128, b: v128) -> v128 {
        f32x4_mul(a, b)
    }

    #[inline(always)]
    fn add_product(sum: v128, a: v128, b: v128) -> v128 {
        f32x4_add(f32x4_mul(a, b), sum)
    }

    #[inline(always)]
    fn subtract_product(sum: v128, a: v128, b: v128) -> v128 {
        f32x4_sub(sum, f32x4_mul(a, b))
    }
}

/// The sums of four products each, of values that all belong to one group.
#[inline(always)]
fn fours<const SIGNED: bool>(weights: v128, x: v128) -> v128 {
    #[cfg(target_feature = "relaxed-simd")]
    if !SIGNED {
        return i32x4_relaxed_dot_i8x16_i7x16_add(x, weights, i32x4_splat(0));
    }
    let [low, high] = widen::<SIGNED>(weights);
    let low = i32x4_dot_i16x8(low, i16x8_extend_low_i8x16(x));
    i32x4_add(low, i32x4_dot_i16x8(high, i16x8_extend_high_i8x16(x)))
}

/// Bytes as numbers of sixteen bits. For unsigned ones that takes fewer instructions of the machine.
#[inline(always)]
fn widen<const SIGNED: bool>(bytes: v128) -> [v128; 2] {
    match SIGNED {
        true => [i16x8_extend_low_i8x16(bytes), i16x8_extend_high_i8x16(bytes)],
        false => [u16x8_extend_low_u8x16(bytes), u16x8_extend_high_u8x16(bytes)],
    }
}

/// The sum of all lanes of each of four vectors.
#[inline(always)]
fn four_sums([a, b, c, d]: [v128; 4]) -> v128 {
    let ab = i32x4_add(i32x4_shuffle::<0, 4, 1, 5>(a, b), i32x4_shuffle::<2, 6, 3, 7>(a, b));
    let cd = i32x4_add(i32x4_shuffle::<0, 4, 1, 5>(c, d), i32x4_shuffle::<2, 6, 3, 7>(c, d));
    i32x4_add(i64x2_shuffle::<0, 2>(ab, cd), i64x2_shuffle::<1, 3>(ab, cd))
}
