//! Kernels for every machine.

#![expect(unsafe_code, reason = "vectors are loaded through pointers")]

use super::{Instructions, Kernels, table};
use crate::{activations::BLOCK, float};

pub(super) static KERNELS: Kernels = table!("portable", Portable, []);

/// What every processor has: arrays, which compilers may turn into vectors.
pub(super) struct Portable;

const LANES: usize = 4;

impl Instructions for Portable {
    const FUSED: bool = false;
    const LANES: usize = LANES;
    const RAISES: bool = false;
    const MANY_REGISTERS: bool = false;
    type Bytes = [i8; 4 * LANES];
    type Ints = [i32; LANES];
    type Floats = [f32; LANES];

    #[inline(always)]
    fn group_sums<const GROUPS: usize, const SIGNED: bool>(
        weights: &[u8; BLOCK],
        x: &[i8; BLOCK],
    ) -> [i32; GROUPS] {
        let groups = weights.chunks_exact(BLOCK / GROUPS).zip(x.chunks_exact(BLOCK / GROUPS));
        let mut sums = [0; GROUPS];
        for (sum, (weights, x)) in sums.iter_mut().zip(groups) {
            for (&weight, &x) in weights.iter().zip(x) {
                // Unsigned weights are below 128, so they may be widened as signed ones.
                *sum += i32::from(i16::from(weight as i8)) * i32::from(i16::from(x));
            }
        }
        sums
    }

    #[inline(always)]
    unsafe fn bytes(at: *const u8) -> Self::Bytes {
        // SAFETY: the caller's promise.
        unsafe { at.cast::<Self::Bytes>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn four_bytes(at: *const i8) -> Self::Bytes {
        // SAFETY: the caller's promise.
        let four: [i8; 4] = unsafe { at.cast::<[i8; 4]>().read_unaligned() };
        std::array::from_fn(|i| four[i % 4])
    }

    #[inline(always)]
    fn no_ints() -> Self::Ints {
        [0; LANES]
    }

    #[inline(always)]
    fn dot<const SIGNED: bool>(mut sums: Self::Ints, weights: Self::Bytes, x: Self::Bytes) -> Self::Ints {
        for lane in 0..LANES {
            for i in 4 * lane..4 * lane + 4 {
                sums[lane] += i32::from(i16::from(weights[i])) * i32::from(i16::from(x[i]));
            }
        }
        sums
    }

    #[inline(always)]
    fn to_floats(sums: Self::Ints) -> Self::Floats {
        sums.map(|sum| sum as f32)
    }

    #[inline(always)]
    unsafe fn load(at: *const f32) -> Self::Floats {
        // SAFETY: the caller's promise.
        unsafe { at.cast::<Self::Floats>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn load_halves(at: *const u16) -> Self::Floats {
        // SAFETY: the caller's promise.
        unsafe { at.cast::<[u16; LANES]>().read_unaligned() }.map(float::half_to_f32)
    }

    #[inline(always)]
    unsafe fn load_upper(at: *const u16) -> Self::Floats {
        // SAFETY: the caller's promise.
        unsafe { at.cast::<[u16; LANES]>().read_unaligned() }
            .map(|bits| f32::from_bits(u32::from(bits) << 16))
    }

    #[inline(always)]
    unsafe fn store(at: *mut f32, values: Self::Floats) {
        // SAFETY: the caller's promise.
        unsafe { at.cast::<Self::Floats>().write_unaligned(values) };
    }

    #[inline(always)]
    fn splat(value: f32) -> Self::Floats {
        [value; LANES]
    }

    #[inline(always)]
    fn add(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        std::array::from_fn(|i| a[i] + b[i])
    }

    #[inline(always)]
    fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        std::array::from_fn(|i| a[i] * b[i])
    }

    #[inline(always)]
    fn add_product(sum: Self::Floats, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        std::array::from_fn(|i| a[i] * b[i] + sum[i])
    }

    #[inline(always)]
    fn subtract_product(sum: Self::Floats, a: Self::Floats, b: Self::Floats) -> Self::Floats {
        std::array::from_fn(|i| sum[i] - a[i] * b[i])
    }
}
