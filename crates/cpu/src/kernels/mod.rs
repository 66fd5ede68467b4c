//! The inner loops, once for each set of instructions.
//!
//! Most of them are plain Rust (`plain`) that the compiler vectorises for the instructions it may assume; a table of
//! functions compiles them again for more. Only products of bytes, and the widening of half floats, need instructions
//! that no plain loop is compiled to: those are the methods of [`Instructions`]. The processor is asked once which table
//! to use.

mod plain;
mod portable;

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128;
#[cfg(target_arch = "x86_64")]
mod x86;

use rullama_gguf::Format;

use crate::{activations::QuantRow, unpack::Unpacked};

/// Rows of activations that a product kernel multiplies with a row of weights at once.
pub(crate) const AT_ONCE: usize = 4;

/// A set of instructions.
///
/// Implementations are `#[inline(always)]`: they become part of a function that is compiled for those instructions. Nothing
/// else may call them.
trait Instructions {
    /// Whether a product and a sum are one instruction; as two, `mul_add` would be a slow call.
    const FUSED: bool;

    /// Widens eight half floats.
    fn widen(halves: &[u16; 8]) -> [f32; 8];

    /// Products of a row of weights with `N` rows of activations. `SIGNED` says whether the weights are.
    fn products<const N: usize, const SIGNED: bool>(weights: &Unpacked, x: [QuantRow<'_>; N]) -> [f32; N];
}

/// The inner loops for one set of instructions.
#[expect(
    clippy::type_complexity,
    reason = "a name for each type of function would say less than its parameters"
)]
pub(crate) struct Kernels {
    /// What the set is called.
    pub(crate) name: &'static str,
    /// Quantises a row of activations: values, quants, scales, sums.
    pub(crate) quantise: fn(&[f32], &mut [i8], &mut [f32], &mut [f32]),
    /// Unpacks a row of weights.
    pub(crate) unpack: fn(Format, &[u8], &mut Unpacked),
    /// Products of a row of weights with up to [`AT_ONCE`] rows of activations.
    pub(crate) products: fn(&Unpacked, &[QuantRow<'_>], &mut [f32]),
    /// Decodes a row of half floats.
    pub(crate) decode_halves: fn(&[u8], &mut [f32]),
    /// Products of a row of decoded weights with up to [`AT_ONCE`] rows of activations.
    pub(crate) float_products: fn(&[f32], &[&[f32]], &mut [f32]),
    /// The product of two rows, the second in half floats.
    pub(crate) half_product: fn(&[f32], &[u16]) -> f32,
    /// Adds a row times a factor.
    pub(crate) add_scaled: fn(&mut [f32], f32, &[f32]),
    /// Adds a row of half floats times a factor.
    pub(crate) add_scaled_halves: fn(&mut [f32], f32, &[u16]),
    /// Makes scores into probabilities.
    pub(crate) softmax: fn(&mut [f32]),
    /// `gelu(gate) · up`.
    pub(crate) gelu_mul: fn(&[f32], &[f32], &mut [f32]),
    /// `x / sqrt(mean(x²) + eps)`, times a weight if there is one.
    pub(crate) rms_norm: fn(&[f32], Option<&[f32]>, f32, &mut [f32]),
    /// The position of the first value that is infinite or NaN.
    pub(crate) not_finite: fn(&[f32]) -> Option<usize>,
}

/// A function of the table: `work`, compiled for the features that are named.
macro_rules! entry {
    ([$($feature:literal)?], ($($name:ident: $kind:ty),*) $(-> $result:ty)?, $work:expr) => {{
        #[allow(unused_unsafe, clippy::allow_attributes, reason = "portable functions need no unsafe")]
        fn outer($($name: $kind),*) $(-> $result)? {
            $(#[target_feature(enable = $feature)])?
            fn inner($($name: $kind),*) $(-> $result)? {
                $work($($name),*)
            }
            // SAFETY: the function needs its target features and nothing else. Its table is private to the module that
            // defines it, and given out only after the processor was found to have these features.
            unsafe { inner($($name),*) }
        }
        outer
    }};
}

/// A table of kernels for one set of instructions.
macro_rules! table {
    ($label:expr, $set:ty, [$($feature:literal)?]) => {{
        use rullama_gguf::Format;
        use $crate::{activations::{QuantRow, quantise}, kernels::{Kernels, entry, plain}, unpack::{Unpacked, unpack}};
        Kernels {
            name: $label,
            quantise: entry!([$($feature)?], (x: &[f32], q: &mut [i8], s: &mut [f32], t: &mut [f32]), quantise),
            unpack: entry!([$($feature)?], (format: Format, blocks: &[u8], row: &mut Unpacked), unpack),
            products: entry!(
                [$($feature)?],
                (weights: &Unpacked, x: &[QuantRow<'_>], out: &mut [f32]),
                plain::products::<$set>
            ),
            decode_halves: entry!([$($feature)?], (halves: &[u8], out: &mut [f32]), plain::decode_halves::<$set>),
            float_products: entry!(
                [$($feature)?],
                (weights: &[f32], x: &[&[f32]], out: &mut [f32]),
                plain::float_products::<$set>
            ),
            half_product: entry!([$($feature)?], (a: &[f32], b: &[u16]) -> f32, plain::half_product::<$set>),
            add_scaled: entry!([$($feature)?], (out: &mut [f32], by: f32, x: &[f32]), plain::add_scaled::<$set>),
            add_scaled_halves: entry!(
                [$($feature)?],
                (out: &mut [f32], by: f32, x: &[u16]),
                plain::add_scaled_halves::<$set>
            ),
            softmax: entry!([$($feature)?], (scores: &mut [f32]), plain::softmax),
            gelu_mul: entry!([$($feature)?], (gate: &[f32], up: &[f32], out: &mut [f32]), plain::gelu_mul),
            rms_norm: entry!(
                [$($feature)?],
                (x: &[f32], weight: Option<&[f32]>, eps: f32, out: &mut [f32]),
                plain::rms_norm
            ),
            not_finite: entry!([$($feature)?], (x: &[f32]) -> Option<usize>, plain::not_finite),
        }
    }};
}

use {entry, table};

impl Kernels {
    /// Those that every machine of this kind can run.
    pub(crate) fn portable() -> &'static Self {
        &portable::KERNELS
    }

    /// All that this machine can run, the fastest first.
    pub(crate) fn available() -> Vec<&'static Self> {
        let special: Vec<&'static Self> = cfg_select! {
            target_arch = "x86_64" => x86::available(),
            all(target_arch = "wasm32", target_feature = "simd128") => vec![&simd128::KERNELS],
            _ => Vec::new(),
        };
        special.into_iter().chain([Self::portable()]).collect()
    }
}

impl std::fmt::Debug for Kernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Kernels").field(&self.name).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_of_instructions_widens_every_half_exactly() {
        let halves: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        let expected: Vec<u32> =
            (0..=u16::MAX).map(|half| crate::float::half_to_f32(half).to_bits()).collect();
        let mut found = vec![0.0; expected.len()];
        for kernels in Kernels::available() {
            (kernels.decode_halves)(&halves, &mut found);
            // Processors may set the bit that says that a NaN was looked at.
            let differs = |(found, &expected): (&f32, &u32)| {
                found.to_bits() != expected && !(found.is_nan() && f32::from_bits(expected).is_nan())
            };
            assert!(!found.iter().zip(&expected).any(differs), "{}", kernels.name);
        }
    }
}
