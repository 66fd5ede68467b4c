//! Kernels for 64-bit ARM processors, all of which have NEON, and for those that also have its byte products of four.

#![expect(
    unsafe_code,
    reason = "some intrinsics are unsafe to call, and vectors are loaded through pointers"
)]

use std::arch::{aarch64::*, asm, is_aarch64_feature_detected};

use super::{Instructions, Kernels, table};
use crate::activations::BLOCK;

static NEON: Kernels = table!("neon", Neon<false>, []);
static NEON_DOT: Kernels = table!("neon-dotprod", Neon<true>, ["neon,dotprod"]);

/// The tables that this processor can run, the fastest first.
pub(super) fn available() -> Vec<&'static Kernels> {
    let mut all = vec![&NEON];
    if is_aarch64_feature_detected!("dotprod") {
        all.insert(0, &NEON_DOT);
    }
    all
}

/// NEON, with byte products of four if `DOT`.
struct Neon<const DOT: bool>;

// SAFETY of all unsafe blocks below that call intrinsics: every processor of this kind has NEON, and functions with byte
// products of four are inlined into others that are compiled for them, as the documentation of the trait demands. Pointers
// are the caller's promise, or those of whole arrays.

impl<const DOT: bool> Instructions for Neon<DOT> {
    const FUSED: bool = true;
    const LANES: usize = 4;
    const RAISES: bool = false;
    const MANY_REGISTERS: bool = true;
    type Bytes = int8x16_t;
    type Ints = int32x4_t;
    type Floats = float32x4_t;

    #[inline(always)]
    fn group_sums<const GROUPS: usize, const SIGNED: bool>(
        weights: &[u8; BLOCK],
        x: &[i8; BLOCK],
    ) -> [i32; GROUPS] {
        let mut sums = [0; GROUPS];
        let vectors = 16 / GROUPS;
        for (four, sums) in sums.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            // SAFETY: see above.
            unsafe {
                let mut groups = [vdupq_n_s32(0); 4];
                for (group, sum) in groups.iter_mut().enumerate() {
                    for vector in 0..vectors {
                        let at = 16 * ((4 * four + group) * vectors + vector);
                        let (weights, x) = (weights.as_ptr().add(at).cast(), x.as_ptr().add(at));
                        *sum = Self::dot::<SIGNED>(*sum, vld1q_s8(weights), vld1q_s8(x));
                    }
                }
                let [a, b, c, d] = groups;
                vst1q_s32(sums.as_mut_ptr(), vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d)));
            }
        }
        sums
    }

    #[inline(always)]
    unsafe fn bytes(at: *const u8) -> int8x16_t {
        // SAFETY: see above.
        unsafe { vld1q_s8(at.cast()) }
    }

    #[inline(always)]
    unsafe fn four_bytes(at: *const i8) -> int8x16_t {
        // SAFETY: see above.
        unsafe { vreinterpretq_s8_s32(vdupq_n_s32(at.cast::<i32>().read_unaligned())) }
    }

    #[inline(always)]
    fn no_ints() -> int32x4_t {
        // SAFETY: see above.
        unsafe { vdupq_n_s32(0) }
    }

    /// Unsigned weights are below 128, so they may be taken as signed ones.
    #[inline(always)]
    fn dot<const SIGNED: bool>(sums: int32x4_t, weights: int8x16_t, x: int8x16_t) -> int32x4_t {
        // SAFETY: see above.
        unsafe {
            if DOT {
                // The intrinsic is not stable yet.
                let mut sums = sums;
                asm!(
                    ".arch_extension dotprod",
                    "sdot {sums:v}.4s, {weights:v}.16b, {x:v}.16b",
                    sums = inout(vreg) sums,
                    weights = in(vreg) weights,
                    x = in(vreg) x,
                    options(pure, nomem, nostack, preserves_flags)
                );
                return sums;
            }
            let low = vpaddlq_s16(vmull_s8(vget_low_s8(weights), vget_low_s8(x)));
            let high = vpaddlq_s16(vmull_high_s8(weights, x));
            vaddq_s32(sums, vpaddq_s32(low, high))
        }
    }

    #[inline(always)]
    fn to_floats(sums: int32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vcvtq_f32_s32(sums) }
    }

    #[inline(always)]
    unsafe fn load(at: *const f32) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vld1q_f32(at) }
    }

    #[inline(always)]
    unsafe fn load_halves(at: *const u16) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(at))) }
    }

    #[inline(always)]
    unsafe fn load_upper(at: *const u16) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vreinterpretq_f32_u32(vshll_n_u16::<16>(vld1_u16(at))) }
    }

    #[inline(always)]
    unsafe fn store(at: *mut f32, values: float32x4_t) {
        // SAFETY: see above.
        unsafe { vst1q_f32(at, values) }
    }

    #[inline(always)]
    fn splat(value: f32) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vdupq_n_f32(value) }
    }

    #[inline(always)]
    fn add(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vaddq_f32(a, b) }
    }

    #[inline(always)]
    fn mul(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vmulq_f32(a, b) }
    }

    #[inline(always)]
    fn add_product(sum: float32x4_t, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vfmaq_f32(sum, a, b) }
    }

    #[inline(always)]
    fn subtract_product(sum: float32x4_t, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vfmsq_f32(sum, a, b) }
    }
}
