//! Products of rows of weights with one row of activations, as in decoding: `y = W · x`.
//!
//! A block of weights is unpacked, multiplied and forgotten. Whole numbers are added up within a group of values, which is
//! exact; each group of a block then has a sum of its own in single precision, to which those of the next blocks are added
//! in turn. [`tile`](super::tile) adds in the same order, so that both give the same bits.

use super::Instructions;
use crate::{
    activations::QuantBlock,
    product::StoredRows,
    unpack::{Packed, Unpacked},
};

#[inline(always)]
pub(super) fn products<I: Instructions, P: Packed, const GROUPS: usize, const SIGNED: bool>(
    rows: StoredRows<'_>,
    x: &[QuantBlock],
    out: &mut [f32],
) {
    let mut weights = Unpacked::ZERO;
    for (row, out) in rows.bytes.chunks_exact(rows.row_bytes).zip(out) {
        let mut sums = [0.0; GROUPS];
        for (blocks, x) in row.chunks(P::BYTES).zip(x) {
            P::unpack::<I>(blocks, &mut weights);
            let whole = I::group_sums::<GROUPS, SIGNED>(&weights.quants, &x.quants);
            for group in 0..GROUPS {
                let scale = weights.scales[group] * x.scales::<GROUPS>()[group];
                sums[group] = I::fused(whole[group] as f32, scale, sums[group]);
                if !SIGNED {
                    sums[group] = I::fused(-weights.minimums[group], x.sums::<GROUPS>()[group], sums[group]);
                }
            }
        }
        // Without this, the compiler computes each sum in the order in which the last lines add them: in pairs.
        *out = total(std::hint::black_box(sums));
    }
}

/// The sum of all groups, by halves.
#[inline(always)]
fn total<const GROUPS: usize>(mut sums: [f32; GROUPS]) -> f32 {
    let mut half = GROUPS;
    while half > 1 {
        half /= 2;
        for group in 0..half {
            sums[group] += sums[group + half];
        }
    }
    sums[0]
}
