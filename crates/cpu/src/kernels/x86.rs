//! Kernels for x86-64 processors with AVX2, and for those with the byte products of AVX-512 VNNI.

#![expect(
    unsafe_code,
    reason = "intrinsics are unsafe to call outside of functions with their target features"
)]

use std::arch::x86_64::*;

use super::{Instructions, Kernels, table};
use crate::activations::BLOCK;

static AVX2: Kernels = table!("avx2", Avx2<false>, ["avx2,fma,f16c"]);
static AVX_VNNI: Kernels = table!("avx-vnni", Avx2<true>, ["avx2,fma,f16c,avxvnni"]);
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
    if avx2 && is_x86_feature_detected!("avxvnni") {
        all.push(&AVX_VNNI);
    }
    if avx2 {
        all.push(&AVX2);
    }
    all
}

/// AVX2 with fused products and half floats, and with byte products of four if `VNNI`.
struct Avx2<const VNNI: bool>;

/// AVX-512 with byte products of four.
struct Avx512;

// SAFETY of all unsafe blocks below that call intrinsics: these functions are inlined into others that are compiled for the
// instructions, as the documentation of the trait demands. Pointers are the caller's promise, or those of whole arrays.

impl<const VNNI: bool> Instructions for Avx2<VNNI> {
    const FUSED: bool = true;
    const LANES: usize = 8;
    const RAISES: bool = VNNI;
    const MANY_REGISTERS: bool = false;
    type Bytes = __m256i;
    type Ints = __m256i;
    type Floats = __m256;

    /// Each vector of byte products belongs to a group of 32, and each half of it to a group of 16.
    #[inline(always)]
    fn group_sums<const GROUPS: usize, const SIGNED: bool>(
        weights: &[u8; BLOCK],
        x: &[i8; BLOCK],
    ) -> [i32; GROUPS] {
        let mut sums = [0; GROUPS];
        // SAFETY: see above.
        unsafe {
            let mut parts = [_mm256_setzero_si256(); 8];
            for part in 0..8 {
                let weights = _mm256_loadu_si256(weights.as_ptr().add(32 * part).cast());
                let x = _mm256_loadu_si256(x.as_ptr().add(32 * part).cast());
                parts[part] = Self::dot::<SIGNED>(parts[part], weights, x);
            }
            let [a, b, c, d, e, f, g, h] = parts;
            // The lanes of the first four parts' lower halves, then those of their upper halves.
            let (low, high) = (four_sums_256([a, b, c, d]), four_sums_256([e, f, g, h]));
            if GROUPS == 8 {
                let lower_halves = _mm256_permute2x128_si256::<0x20>(low, high);
                let upper_halves = _mm256_permute2x128_si256::<0x31>(low, high);
                _mm256_storeu_si256(sums.as_mut_ptr().cast(), _mm256_add_epi32(lower_halves, upper_halves));
            } else {
                let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
                let (low, high) =
                    (_mm256_permutevar8x32_epi32(low, order), _mm256_permutevar8x32_epi32(high, order));
                _mm256_storeu_si256(sums.as_mut_ptr().cast(), low);
                _mm256_storeu_si256(sums.as_mut_ptr().add(8).cast(), high);
            }
        }
        sums
    }

    #[inline(always)]
    unsafe fn bytes(at: *const u8) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_loadu_si256(at.cast()) }
    }

    #[inline(always)]
    unsafe fn four_bytes(at: *const i8) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_set1_epi32(at.cast::<i32>().read_unaligned()) }
    }

    #[inline(always)]
    fn no_ints() -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    fn dot<const SIGNED: bool>(sums: __m256i, weights: __m256i, x: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe {
            if VNNI {
                return _mm256_dpbusd_avx_epi32(sums, weights, x);
            }
            // The instruction takes unsigned and signed bytes: the sign of a weight moves to the activation. Two products of
            // at most 128 · 127 do not overflow 16 bits.
            let twos = match SIGNED {
                false => _mm256_maddubs_epi16(weights, x),
                true => _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(x, weights)),
            };
            _mm256_add_epi32(sums, _mm256_madd_epi16(twos, _mm256_set1_epi16(1)))
        }
    }

    #[inline(always)]
    fn to_floats(sums: __m256i) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_cvtepi32_ps(sums) }
    }

    #[inline(always)]
    unsafe fn load(at: *const f32) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_loadu_ps(at) }
    }

    #[inline(always)]
    unsafe fn load_halves(at: *const u16) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(at.cast())) }
    }

    #[inline(always)]
    unsafe fn load_upper(at: *const u16) -> __m256 {
        // SAFETY: see above.
        unsafe {
            let bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(at.cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(bits))
        }
    }

    #[inline(always)]
    unsafe fn store(at: *mut f32, values: __m256) {
        // SAFETY: see above.
        unsafe { _mm256_storeu_ps(at, values) }
    }

    #[inline(always)]
    fn splat(value: f32) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_set1_ps(value) }
    }

    #[inline(always)]
    fn half(bits: u16) -> f32 {
        half(bits)
    }

    #[inline(always)]
    fn transpose(rows: [[u8; 16]; 4]) -> [[u8; 16]; 4] {
        transpose(rows)
    }

    #[inline(always)]
    fn add(a: __m256, b: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    fn mul(a: __m256, b: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_mul_ps(a, b) }
    }

    #[inline(always)]
    fn add_product(sum: __m256, a: __m256, b: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_fmadd_ps(a, b, sum) }
    }

    #[inline(always)]
    fn subtract_product(sum: __m256, a: __m256, b: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_fnmadd_ps(a, b, sum) }
    }
}

impl Instructions for Avx512 {
    const FUSED: bool = true;
    const LANES: usize = 16;
    const RAISES: bool = true;
    const MANY_REGISTERS: bool = true;
    type Bytes = __m512i;
    type Ints = __m512i;
    type Floats = __m512;

    /// Each quarter of a vector of byte products belongs to a group of 16.
    #[inline(always)]
    fn group_sums<const GROUPS: usize, const SIGNED: bool>(
        weights: &[u8; BLOCK],
        x: &[i8; BLOCK],
    ) -> [i32; GROUPS] {
        let mut sums = [0; GROUPS];
        // SAFETY: see above.
        unsafe {
            let mut parts = [_mm512_setzero_si512(); 4];
            for part in 0..4 {
                let weights = _mm512_loadu_si512(weights.as_ptr().add(64 * part).cast());
                let x = _mm512_loadu_si512(x.as_ptr().add(64 * part).cast());
                parts[part] = _mm512_dpbusd_epi32(parts[part], weights, x);
            }
            // In each quarter, the sum of that quarter of each part.
            let quarters = four_sums_512(parts);
            if GROUPS == 8 {
                let even = _mm512_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11, 0, 0, 0, 0, 0, 0, 0, 0);
                let odd = _mm512_setr_epi32(4, 12, 5, 13, 6, 14, 7, 15, 0, 0, 0, 0, 0, 0, 0, 0);
                let even = _mm512_castsi512_si256(_mm512_permutexvar_epi32(even, quarters));
                let odd = _mm512_castsi512_si256(_mm512_permutexvar_epi32(odd, quarters));
                _mm256_storeu_si256(sums.as_mut_ptr().cast(), _mm256_add_epi32(even, odd));
            } else {
                let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
                _mm512_storeu_si512(sums.as_mut_ptr().cast(), _mm512_permutexvar_epi32(order, quarters));
            }
        }
        sums
    }

    #[inline(always)]
    unsafe fn bytes(at: *const u8) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_loadu_si512(at.cast()) }
    }

    #[inline(always)]
    unsafe fn four_bytes(at: *const i8) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_set1_epi32(at.cast::<i32>().read_unaligned()) }
    }

    #[inline(always)]
    fn no_ints() -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    fn dot<const SIGNED: bool>(sums: __m512i, weights: __m512i, x: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_dpbusd_epi32(sums, weights, x) }
    }

    #[inline(always)]
    fn to_floats(sums: __m512i) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_cvtepi32_ps(sums) }
    }

    #[inline(always)]
    unsafe fn load(at: *const f32) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_loadu_ps(at) }
    }

    #[inline(always)]
    unsafe fn load_halves(at: *const u16) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(at.cast())) }
    }

    #[inline(always)]
    unsafe fn load_upper(at: *const u16) -> __m512 {
        // SAFETY: see above.
        unsafe {
            let bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256(at.cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(bits))
        }
    }

    #[inline(always)]
    unsafe fn store(at: *mut f32, values: __m512) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_ps(at, values) }
    }

    #[inline(always)]
    fn splat(value: f32) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_set1_ps(value) }
    }

    #[inline(always)]
    fn half(bits: u16) -> f32 {
        half(bits)
    }

    #[inline(always)]
    fn transpose(rows: [[u8; 16]; 4]) -> [[u8; 16]; 4] {
        transpose(rows)
    }

    #[inline(always)]
    fn add(a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    fn mul(a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    fn add_product(sum: __m512, a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_fmadd_ps(a, b, sum) }
    }

    #[inline(always)]
    fn subtract_product(sum: __m512, a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_fnmadd_ps(a, b, sum) }
    }
}

/// Widens a half float. Called only from functions that are compiled for F16C.
#[inline(always)]
fn half(bits: u16) -> f32 {
    // SAFETY: F16C is there, as the comment above says.
    unsafe { _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits.into()))) }
}

/// Four rows of four words become four columns.
#[inline(always)]
fn transpose(rows: [[u8; 16]; 4]) -> [[u8; 16]; 4] {
    // SAFETY: every x86-64 processor has these instructions, and arrays of sixteen bytes are read and written.
    unsafe {
        let [a, b, c, d] = rows.map(|row| _mm_loadu_si128(row.as_ptr().cast()));
        let (ab, cd) = (_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
        let (ab_high, cd_high) = (_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c, d));
        let columns = [
            _mm_unpacklo_epi64(ab, cd),
            _mm_unpackhi_epi64(ab, cd),
            _mm_unpacklo_epi64(ab_high, cd_high),
            _mm_unpackhi_epi64(ab_high, cd_high),
        ];
        columns.map(|column| {
            let mut bytes = [0; 16];
            _mm_storeu_si128(bytes.as_mut_ptr().cast(), column);
            bytes
        })
    }
}

/// For each half, the sum of that half of each of four vectors.
///
/// # Safety
///
/// The caller is compiled for AVX2.
#[inline(always)]
unsafe fn four_sums_256([a, b, c, d]: [__m256i; 4]) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        let ab = _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
        let cd = _mm256_add_epi32(_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
        _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd))
    }
}

/// For each quarter, the sum of that quarter of each of four vectors.
///
/// # Safety
///
/// The caller is compiled for AVX-512.
#[inline(always)]
unsafe fn four_sums_512([a, b, c, d]: [__m512i; 4]) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe {
        let ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
        let cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
        _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd))
    }
}
