//! Kernels for every machine.

use super::{Instructions, Kernels, table};
use crate::{
    activations::{GROUP, QuantRow},
    float,
    unpack::Unpacked,
};

#[expect(unsafe_code, reason = "tables of other instructions need it; this one calls nothing that is unsafe")]
pub(super) static KERNELS: Kernels = table!("portable", Portable, []);

/// What every processor has.
pub(super) struct Portable;

impl Instructions for Portable {
    const FUSED: bool = false;

    #[inline(always)]
    fn widen(halves: &[u16; 8]) -> [f32; 8] {
        halves.map(float::half_to_f32)
    }

    #[inline(always)]
    fn products<const N: usize, const SIGNED: bool>(weights: &Unpacked, x: [QuantRow<'_>; N]) -> [f32; N] {
        x.map(|x| {
            let mut sum = 0.0;
            let groups = weights.quants.as_chunks::<GROUP>().0.iter().zip(x.quants.as_chunks::<GROUP>().0);
            for (group, (weight, quants)) in groups.enumerate() {
                let mut whole = 0;
                for (&weight, &quant) in weight.iter().zip(quants) {
                    let weight = if SIGNED { i32::from(weight as i8) } else { i32::from(weight) };
                    whole += weight * i32::from(quant);
                }
                sum += whole as f32 * (weights.scales[group] * x.scales[group]);
                if !SIGNED {
                    sum -= weights.minimums[group] * x.sums[group];
                }
            }
            sum
        })
    }
}
