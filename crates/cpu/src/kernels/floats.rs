//! Sums of products of floating-point numbers. They are kept in a fixed number of lanes and added up in a fixed order: a
//! row's result never depends on the rows beside it.

#![expect(unsafe_code, reason = "vectors are loaded through pointers")]

use super::Instructions;
use crate::float;

/// Vectors of sums of each product: a vector's next product need not wait for the one before.
const SUMS: usize = 2;
/// The most lanes of a vector.
const MOST_LANES: usize = 16;

/// How floating-point numbers are stored.
pub(crate) trait Stored: Copy {
    /// Widens as many as a vector has lanes.
    ///
    /// # Safety
    ///
    /// There are that many at `at`.
    unsafe fn load<I: Instructions>(at: *const Self) -> I::Floats;

    fn widen(self) -> f32;
}

impl Stored for f32 {
    #[inline(always)]
    unsafe fn load<I: Instructions>(at: *const Self) -> I::Floats {
        // SAFETY: the caller's promise.
        unsafe { I::load(at) }
    }

    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }
}

/// An IEEE half float.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Half(pub(crate) u16);

impl Stored for Half {
    #[inline(always)]
    unsafe fn load<I: Instructions>(at: *const Self) -> I::Floats {
        // SAFETY: the caller's promise.
        unsafe { I::load_halves(at.cast()) }
    }

    #[inline(always)]
    fn widen(self) -> f32 {
        float::half_to_f32(self.0)
    }
}

/// The upper half of an `f32`.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Upper(pub(crate) u16);

impl Stored for Upper {
    #[inline(always)]
    unsafe fn load<I: Instructions>(at: *const Self) -> I::Floats {
        // SAFETY: the caller's promise.
        unsafe { I::load_upper(at.cast()) }
    }

    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

/// The products of a row with `N` others of the same width.
///
/// `a` may begin at any byte: files align rows of tensors to less than their numbers.
#[inline(always)]
fn products<I: Instructions, S: Stored, const N: usize>(
    a: *const S,
    width: usize,
    b: [&[f32]; N],
) -> [f32; N] {
    assert!(b.iter().all(|b| b.len() == width));
    let step = SUMS * I::LANES;
    let mut sums = [[I::splat(0.0); SUMS]; N];
    let mut at = 0;
    while at + step <= width {
        for part in 0..SUMS {
            // SAFETY: all rows have `width` numbers.
            unsafe {
                let from = at + part * I::LANES;
                let a = S::load::<I>(a.add(from));
                for n in 0..N {
                    sums[n][part] = I::add_product(sums[n][part], a, I::load(b[n].as_ptr().add(from)));
                }
            }
        }
        at += step;
    }
    let mut totals = [0.0; N];
    for n in 0..N {
        let mut lanes = [0.0; MOST_LANES];
        // SAFETY: no vector has more lanes than this.
        unsafe { I::store(lanes.as_mut_ptr(), I::add(sums[n][0], sums[n][1])) };
        let mut half = I::LANES;
        while half > 1 {
            half /= 2;
            for lane in 0..half {
                lanes[lane] += lanes[lane + half];
            }
        }
        let mut rest = 0.0;
        for i in at..width {
            // SAFETY: the row has `width` numbers.
            let a = unsafe { a.add(i).read_unaligned() };
            rest = I::fused(a.widen(), b[n][i], rest);
        }
        totals[n] = lanes[0] + rest;
    }
    totals
}

/// Products of a row of stored weights with some rows of activations.
#[inline(always)]
pub(super) fn of_row<I: Instructions, S: Stored>(row: &[u8], x: &[&[f32]], out: &mut [f32]) {
    let (a, width) = (row.as_ptr().cast::<S>(), row.len() / size_of::<S>());
    let (fours, rest) = x.as_chunks::<4>();
    let (out_fours, out_rest) = out.as_chunks_mut::<4>();
    for (x, out) in fours.iter().zip(out_fours) {
        *out = products::<I, S, 4>(a, width, *x);
    }
    for (x, out) in rest.iter().zip(out_rest) {
        [*out] = products::<I, S, 1>(a, width, [x]);
    }
}

/// The product of a row with each of some rows that lie one after another, `stride` numbers apart.
#[inline(always)]
pub(super) fn with_each<I: Instructions, S: Stored>(a: &[f32], rows: &[S], stride: usize, out: &mut [f32]) {
    for (index, out) in out.iter_mut().enumerate() {
        let row = &rows[index * stride..][..a.len()];
        [*out] = products::<I, S, 1>(row.as_ptr(), a.len(), [a]);
    }
}

/// Adds rows that lie one after another, `stride` numbers apart, each times a factor.
#[inline(always)]
pub(super) fn add_weighted<I: Instructions, S: Stored>(
    factors: &[f32],
    rows: &[S],
    stride: usize,
    out: &mut [f32],
) {
    // As many vectors of sums as registers hold.
    const VECTORS: usize = 8;
    let width = out.len();
    let mut from = 0;
    while from + VECTORS * I::LANES <= width {
        columns::<I, S, VECTORS>(factors, rows, stride, from, out);
        from += VECTORS * I::LANES;
    }
    while from + 4 * I::LANES <= width {
        columns::<I, S, 4>(factors, rows, stride, from, out);
        from += 4 * I::LANES;
    }
    while from + 2 * I::LANES <= width {
        columns::<I, S, 2>(factors, rows, stride, from, out);
        from += 2 * I::LANES;
    }
    while from + I::LANES <= width {
        columns::<I, S, 1>(factors, rows, stride, from, out);
        from += I::LANES;
    }
    for at in from..width {
        let mut sum = out[at];
        for (row, &factor) in factors.iter().enumerate() {
            sum = I::fused(factor, rows[row * stride + at].widen(), sum);
        }
        out[at] = sum;
    }
}

/// Computes `VECTORS` vectors of [`add_weighted`], from column `from` on.
#[inline(always)]
fn columns<I: Instructions, S: Stored, const VECTORS: usize>(
    factors: &[f32],
    rows: &[S],
    stride: usize,
    from: usize,
    out: &mut [f32],
) {
    assert!(from + VECTORS * I::LANES <= out.len());
    assert!(factors.is_empty() || (factors.len() - 1) * stride + out.len() <= rows.len());
    let mut sums = [I::splat(0.0); VECTORS];
    for vector in 0..VECTORS {
        // SAFETY: the length was checked above.
        sums[vector] = unsafe { I::load(out.as_ptr().add(from + vector * I::LANES)) };
    }
    for (row, &factor) in factors.iter().enumerate() {
        let factor = I::splat(factor);
        for vector in 0..VECTORS {
            // SAFETY: the lengths were checked above.
            unsafe {
                let values = S::load::<I>(rows.as_ptr().add(row * stride + from + vector * I::LANES));
                sums[vector] = I::add_product(sums[vector], factor, values);
            }
        }
    }
    for vector in 0..VECTORS {
        // SAFETY: the length was checked above.
        unsafe { I::store(out.as_mut_ptr().add(from + vector * I::LANES), sums[vector]) };
    }
}
