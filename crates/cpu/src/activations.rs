//! Activations quantised to eight bits, in blocks of 32 values.
//!
//! Each row is quantised by itself, so a row's result does not depend on the rows beside it. A row is filled up with
//! zeros to a whole number of [`STRIDE`] values: kernels then have no remainders to treat.

use crate::kernels::Kernels;

/// Rows of activations and of unpacked weights are multiples of this many values.
pub(crate) const STRIDE: usize = 256;
/// Scales, minimums and sums stand for this many values each: the smallest sub-block of any format.
pub(crate) const GROUP: usize = 16;
/// Values of an activation block.
pub(crate) const BLOCK: usize = 32;

/// Rows of activations, quantised.
#[derive(Debug, Default)]
pub(crate) struct QuantRows {
    /// Values of a row, with those it was filled up with.
    stride: usize,
    quants: Vec<i8>,
    /// A scale for each group. The two groups of a block have the same.
    scales: Vec<f32>,
    /// The sum of each group's values.
    sums: Vec<f32>,
}

/// One quantised row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QuantRow<'a> {
    pub(crate) quants: &'a [i8],
    pub(crate) scales: &'a [f32],
    pub(crate) sums: &'a [f32],
}

impl QuantRows {
    /// Quantises rows of `width` values, a multiple of a block.
    pub(crate) fn quantise(&mut self, kernels: &Kernels, x: &[f32], width: usize) {
        self.stride = width.next_multiple_of(STRIDE);
        let (rows, groups) = (x.len() / width, self.stride / GROUP);
        self.quants.resize(rows * self.stride, 0);
        self.scales.resize(rows * groups, 0.0);
        self.sums.resize(rows * groups, 0.0);
        for (row, x) in x.chunks(width).enumerate() {
            let quants = &mut self.quants[row * self.stride..][..self.stride];
            let scales = &mut self.scales[row * groups..][..groups];
            let sums = &mut self.sums[row * groups..][..groups];
            (kernels.quantise)(x, quants, scales, sums);
            quants[width..].fill(0);
            scales[width / GROUP..].fill(0.0);
            sums[width / GROUP..].fill(0.0);
        }
    }

    pub(crate) fn row(&self, row: usize) -> QuantRow<'_> {
        let groups = self.stride / GROUP;
        QuantRow {
            quants: &self.quants[row * self.stride..][..self.stride],
            scales: &self.scales[row * groups..][..groups],
            sums: &self.sums[row * groups..][..groups],
        }
    }
}

/// Quantises one row of whole blocks. A block with an infinite value or NaN gets NaN as its scale, so that products with
/// it are NaN too (docs/decisions/0015-not-finite.md).
#[inline(always)]
pub(crate) fn quantise(x: &[f32], quants: &mut [i8], scales: &mut [f32], sums: &mut [f32]) {
    const INFINITY: u32 = f32::INFINITY.to_bits();
    /// Adding this number leaves the nearest whole number in the last bits of the sum.
    const ROUND: f32 = 12_582_912.0;
    /// A block without a larger value counts as zero: the reciprocal of its scale would overflow.
    const SMALLEST: f32 = 1e-30;
    let blocks = x.as_chunks::<BLOCK>().0.iter().zip(quants.as_chunks_mut::<BLOCK>().0);
    let groups = scales.as_chunks_mut::<2>().0.iter_mut().zip(sums.as_chunks_mut::<2>().0);
    for ((x, quants), (scales, sums)) in blocks.zip(groups) {
        // Magnitudes as integers: their order is the same, and infinity and NaN are the largest.
        let mut largest = 0;
        for value in x {
            largest = largest.max(value.to_bits() & 0x7fff_ffff);
        }
        let magnitude = f32::from_bits(largest);
        let scale = if largest >= INFINITY {
            f32::NAN
        } else if magnitude < SMALLEST {
            0.0
        } else {
            magnitude / 127.0
        };
        let inverse = if magnitude < SMALLEST { 0.0 } else { 127.0 / magnitude };
        for (quant, value) in quants.iter_mut().zip(x) {
            *quant = (value * inverse + ROUND).to_bits() as i8;
        }
        let mut whole = [0i32; 2];
        for (sum, quants) in whole.iter_mut().zip(quants.as_chunks::<GROUP>().0) {
            for &quant in quants {
                *sum += i32::from(quant);
            }
        }
        *scales = [scale; 2];
        *sums = [scale * whole[0] as f32, scale * whole[1] as f32];
    }
}
