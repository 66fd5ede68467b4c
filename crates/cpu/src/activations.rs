//! Activations quantised to eight bits, in blocks of 256 values with a scale for each 32.
//!
//! Each row is quantised by itself, so a row's result does not depend on the rows beside it. Its last block is filled up
//! with zeros: kernels then have no remainders to treat.

use crate::{kernels::Kernels, parallel};

/// Values of a block of quantised activations, and of unpacked weights.
pub(crate) const BLOCK: usize = 256;
/// Values that share a scale.
pub(crate) const SCALED: usize = 32;

/// A block of quantised activations. Formats of weights have a scale for each 32 values or for each 16, so that both are
/// prepared here: a product then finds what it needs in as many lanes as it uses.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub(crate) struct QuantBlock {
    pub(crate) quants: [i8; BLOCK],
    by32: Groups<8>,
    by16: Groups<16>,
}

/// For each of a block's groups of values, their scale and the sum of what they stand for.
#[derive(Debug, Clone)]
#[repr(C)]
pub(crate) struct Groups<const GROUPS: usize> {
    pub(crate) scales: [f32; GROUPS],
    pub(crate) sums: [f32; GROUPS],
}

impl QuantBlock {
    const ZERO: Self = Self {
        quants: [0; BLOCK],
        by32: Groups { scales: [0.0; 8], sums: [0.0; 8] },
        by16: Groups { scales: [0.0; 16], sums: [0.0; 16] },
    };

    /// The scales of eight or of sixteen groups.
    #[inline(always)]
    pub(crate) fn scales<const GROUPS: usize>(&self) -> &[f32; GROUPS] {
        let scales = if GROUPS == 8 { &self.by32.scales[..] } else { &self.by16.scales[..] };
        scales.first_chunk().expect("blocks have eight or sixteen groups")
    }

    /// The sums of eight or of sixteen groups.
    #[inline(always)]
    pub(crate) fn sums<const GROUPS: usize>(&self) -> &[f32; GROUPS] {
        let sums = if GROUPS == 8 { &self.by32.sums[..] } else { &self.by16.sums[..] };
        sums.first_chunk().expect("blocks have eight or sixteen groups")
    }
}

/// Rows of activations, quantised.
#[derive(Debug, Default)]
pub(crate) struct QuantRows {
    /// Blocks of a row.
    stride: usize,
    blocks: Vec<QuantBlock>,
}

impl QuantRows {
    /// Quantises rows of `width` values, a multiple of 32.
    pub(crate) fn quantise(&mut self, kernels: &Kernels, x: &[f32], width: usize) {
        self.stride = width.div_ceil(BLOCK);
        self.blocks.resize(x.len() / width * self.stride, QuantBlock::ZERO);
        let quantise = |row: usize, blocks: &mut [QuantBlock]| {
            (kernels.quantise)(&x[row * width..][..width], blocks);
        };
        if x.len() < parallel::WORTH_SHARING {
            self.blocks.chunks_mut(self.stride).enumerate().for_each(|(row, blocks)| quantise(row, blocks));
        } else {
            parallel::each_chunk(&mut self.blocks, self.stride, quantise);
        }
    }

    pub(crate) fn row(&self, row: usize) -> &[QuantBlock] {
        &self.blocks[row * self.stride..][..self.stride]
    }
}

/// Quantises one row. Values with an infinite one or NaN among them get NaN as their scale, so that products with them
/// are NaN too (docs/decisions/0015-not-finite.md).
#[inline(always)]
pub(crate) fn quantise(x: &[f32], blocks: &mut [QuantBlock]) {
    const INFINITY: u32 = f32::INFINITY.to_bits();
    /// Adding this number leaves the nearest whole number in the last bits of the sum.
    const ROUND: f32 = 12_582_912.0;
    /// Values without a larger one among them count as zero: the reciprocal of their scale would overflow.
    const SMALLEST: f32 = 1e-30;
    for (x, block) in x.chunks(BLOCK).zip(blocks) {
        if x.len() < BLOCK {
            *block = QuantBlock::ZERO;
        }
        let parts = x.as_chunks::<SCALED>().0.iter().zip(block.quants.as_chunks_mut::<SCALED>().0);
        for (part, (x, quants)) in parts.enumerate() {
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
            let mut rounded = [0i32; SCALED];
            for i in 0..SCALED {
                // The bits of the number that was added go.
                rounded[i] = ((x[i] * inverse + ROUND).to_bits() << 10) as i32 >> 10;
            }
            let mut sums = [0i32; 2];
            for i in 0..SCALED / 2 {
                sums[0] += rounded[i];
                sums[1] += rounded[i + SCALED / 2];
            }
            for i in 0..SCALED {
                quants[i] = rounded[i] as i8;
            }
            block.by32.scales[part] = scale;
            block.by32.sums[part] = scale * (sums[0] + sums[1]) as f32;
            for half in 0..2 {
                block.by16.scales[2 * part + half] = scale;
                block.by16.sums[2 * part + half] = scale * sums[half] as f32;
            }
        }
    }
}
