//! The inner loops, once for each set of instructions.
//!
//! They are generic over [`Instructions`], or plain Rust (`plain`) that the compiler vectorises for the instructions it may
//! assume. A table of functions compiles them for one set. The processor is asked once which table to use.

mod attend;
mod floats;
mod plain;
mod portable;
mod rows;
mod tile;

#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128;
#[cfg(target_arch = "x86_64")]
mod x86;

use rullama_gguf::Format;
use rullama_graph::Activation;

use crate::{
    activations::{BLOCK, QuantBlock, QuantRows},
    float,
    product::{Place, StoredRows},
    unpack::by_format,
};
pub(crate) use attend::{Queries, TILE as KEYS_TILE};
pub(crate) use floats::Half;
pub(crate) use tile::Tile;

/// A set of instructions.
///
/// Implementations are `#[inline(always)]`: they become part of a function that is compiled for those instructions. Nothing
/// else may call them.
#[expect(unsafe_code, reason = "what reads or writes through a pointer is unsafe")]
pub(crate) trait Instructions {
    /// Whether a product and a sum are one instruction; as two, `mul_add` would be a slow call.
    const FUSED: bool;
    /// Numbers of 32 bits in a vector: 4, 8 or 16.
    const LANES: usize;
    /// Whether byte products take all unsigned bytes as weights, so that signed ones are given with 128 added.
    const RAISES: bool;
    /// Whether there are registers enough for the sums of eight rows, and not only of four.
    const MANY_REGISTERS: bool;

    /// Four bytes for each lane.
    type Bytes: Copy;
    type Ints: Copy;
    type Floats: Copy;

    /// The sum of the products of each group of weights and activations. `SIGNED` says whether the weights are.
    fn group_sums<const GROUPS: usize, const SIGNED: bool>(
        weights: &[u8; BLOCK],
        x: &[i8; BLOCK],
    ) -> [i32; GROUPS];

    /// # Safety
    ///
    /// There are four bytes for each lane at `at`.
    unsafe fn bytes(at: *const u8) -> Self::Bytes;

    /// The same four bytes in all lanes.
    ///
    /// # Safety
    ///
    /// There are four bytes at `at`.
    unsafe fn four_bytes(at: *const i8) -> Self::Bytes;

    fn no_ints() -> Self::Ints;

    /// Adds the products of four weights and four activations to each lane.
    fn dot<const SIGNED: bool>(sums: Self::Ints, weights: Self::Bytes, x: Self::Bytes) -> Self::Ints;

    fn to_floats(sums: Self::Ints) -> Self::Floats;

    /// # Safety
    ///
    /// There are as many numbers at `at` as a vector has lanes. The same holds for the next two.
    unsafe fn load(at: *const f32) -> Self::Floats;

    /// Widens half floats.
    unsafe fn load_halves(at: *const u16) -> Self::Floats;

    /// Widens upper halves of `f32`s.
    unsafe fn load_upper(at: *const u16) -> Self::Floats;

    /// # Safety
    ///
    /// There is room for as many numbers at `at` as a vector has lanes.
    unsafe fn store(at: *mut f32, values: Self::Floats);

    fn splat(value: f32) -> Self::Floats;

    /// Widens a half float.
    #[inline(always)]
    fn half(bits: u16) -> f32 {
        float::half_to_f32(bits)
    }

    /// Four rows of four words of four bytes each become four columns.
    #[inline(always)]
    fn transpose(rows: [[u8; 16]; 4]) -> [[u8; 16]; 4] {
        std::array::from_fn(|column| {
            let words: [[u8; 4]; 4] = rows.map(|row| row.as_chunks().0[column]);
            std::array::from_fn(|i| words[i / 4][i % 4])
        })
    }

    fn add(a: Self::Floats, b: Self::Floats) -> Self::Floats;

    fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats;

    /// `sum + a · b`
    fn add_product(sum: Self::Floats, a: Self::Floats, b: Self::Floats) -> Self::Floats;

    /// `sum − a · b`
    fn subtract_product(sum: Self::Floats, a: Self::Floats, b: Self::Floats) -> Self::Floats;

    /// `a · b + sum`, rounded as [`add_product`](Self::add_product) rounds.
    #[inline(always)]
    fn fused(a: f32, b: f32, sum: f32) -> f32 {
        if Self::FUSED { a.mul_add(b, sum) } else { a * b + sum }
    }
}

/// The inner loops for one set of instructions.
#[expect(
    clippy::type_complexity,
    reason = "a name for each type of function would say less than its parameters"
)]
pub(crate) struct Kernels {
    /// What the set is called.
    pub(crate) name: &'static str,
    /// Rows of a [`Tile`].
    pub(crate) lanes: usize,
    /// Quantises a row of activations.
    pub(crate) quantise: fn(&[f32], &mut [QuantBlock]),
    /// Products of rows with one row of activations.
    pub(crate) rows: fn(StoredRows<'_>, &[QuantBlock], &mut [f32]),
    /// Products of up to [`lanes`](Self::lanes) rows with the rows of activations at some places; they are put behind so
    /// many others.
    pub(crate) tile: fn(StoredRows<'_>, &QuantRows, &[Place], &mut Tile, usize, &mut [&mut [f32]]),
    /// Products of a row of F16, BF16 or F32 with rows of activations.
    pub(crate) float_products: fn(Format, &[u8], &[&[f32]], &mut [f32]),
    /// Products of a row with each of some rows, which lie so far apart.
    pub(crate) with_each: fn(&[f32], &[f32], usize, &mut [f32]),
    /// The same with rows of half floats.
    pub(crate) with_each_half: fn(&[f32], &[Half], usize, &mut [f32]),
    /// Adds rows, which lie so far apart, each times a factor.
    pub(crate) add_weighted: fn(&[f32], &[f32], usize, &mut [f32]),
    /// The same of rows of half floats.
    pub(crate) add_weighted_halves: fn(&[f32], &[Half], usize, &mut [f32]),
    /// Queries that are computed together, one in each lane.
    pub(crate) queries: usize,
    /// Attends from a block of queries to up to [`KEYS_TILE`] more keys and their values.
    pub(crate) attend_tile: fn(&[f32], &[f32], &mut Queries),
    /// Makes scores into probabilities.
    pub(crate) softmax: fn(&mut [f32]),
    /// `gelu(gate) · up`.
    pub(crate) gelu_mul: fn(&[f32], &[f32], &mut [f32]),
    /// `cap · tanh(x / cap)`, and NaN where `x` is not finite.
    pub(crate) soft_cap: fn(&[f32], f32, &mut [f32]),
    /// `x / sqrt(mean(x²) + eps)`, times a weight if there is one.
    pub(crate) rms_norm: fn(&[f32], Option<&[f32]>, f32, &mut [f32]),
    /// `(x − mean(x)) / sqrt(variance(x) + eps)`, times a weight.
    pub(crate) layer_norm: fn(&[f32], &[f32], f32, &mut [f32]),
    /// An activation, and NaN where `x` is not finite.
    pub(crate) activate: fn(Activation, &[f32], &mut [f32]),
    /// The position of the first value that is infinite or NaN.
    pub(crate) not_finite: fn(&[f32]) -> Option<usize>,
}

/// Products of rows with one row of activations.
#[inline(always)]
fn rows<I: Instructions>(rows: StoredRows<'_>, x: &[QuantBlock], out: &mut [f32]) {
    use rows::products;
    by_format!(I, rows.format, products(rows, x, out));
}

/// Products of a tile of rows with many rows of activations.
#[inline(always)]
fn tiles<I: Instructions>(
    rows: StoredRows<'_>,
    x: &QuantRows,
    places: &[Place],
    tile: &mut Tile,
    from: usize,
    out: &mut [&mut [f32]],
) {
    use tile::products;
    by_format!(I, rows.format, products(rows, x, places, tile, from, out));
}

/// Products of a row of F16, BF16 or F32.
#[inline(always)]
fn float_products<I: Instructions>(format: Format, row: &[u8], x: &[&[f32]], out: &mut [f32]) {
    match format {
        Format::F16 => floats::of_row::<I, Half>(row, x, out),
        Format::BF16 => floats::of_row::<I, floats::Upper>(row, x, out),
        _ => floats::of_row::<I, f32>(row, x, out),
    }
}

/// A function of the table: `work`, compiled for the features that are named.
macro_rules! entry {
    ([$($feature:literal)?], ($($name:ident: $kind:ty),*) $(-> $result:ty)?, $work:expr) => {{
        #[allow(
            unused_unsafe,
            clippy::too_many_arguments,
            clippy::allow_attributes,
            reason = "portable functions need no unsafe; a product says where each row comes from and goes"
        )]
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
        use rullama_graph::Activation;
        use $crate::{
            activations::{QuantBlock, QuantRows, quantise},
            kernels::{
                Half, Instructions, Kernels, Queries, Tile, attend, entry, float_products, floats, plain, rows, tiles,
            },
            product::{Place, StoredRows},
        };
        Kernels {
            name: $label,
            lanes: <$set>::LANES,
            quantise: entry!([$($feature)?], (x: &[f32], blocks: &mut [QuantBlock]), quantise),
            rows: entry!(
                [$($feature)?],
                (weights: StoredRows<'_>, x: &[QuantBlock], out: &mut [f32]),
                rows::<$set>
            ),
            tile: entry!(
                [$($feature)?],
                (weights: StoredRows<'_>, x: &QuantRows, places: &[Place], tile: &mut Tile, from: usize, out: &mut [&mut [f32]]),
                tiles::<$set>
            ),
            float_products: entry!(
                [$($feature)?],
                (format: Format, row: &[u8], x: &[&[f32]], out: &mut [f32]),
                float_products::<$set>
            ),
            with_each: entry!(
                [$($feature)?],
                (a: &[f32], rows: &[f32], stride: usize, out: &mut [f32]),
                floats::with_each::<$set, f32>
            ),
            with_each_half: entry!(
                [$($feature)?],
                (a: &[f32], rows: &[Half], stride: usize, out: &mut [f32]),
                floats::with_each::<$set, Half>
            ),
            add_weighted: entry!(
                [$($feature)?],
                (factors: &[f32], rows: &[f32], stride: usize, out: &mut [f32]),
                floats::add_weighted::<$set, f32>
            ),
            add_weighted_halves: entry!(
                [$($feature)?],
                (factors: &[f32], rows: &[Half], stride: usize, out: &mut [f32]),
                floats::add_weighted::<$set, Half>
            ),
            queries: attend::VECTORS * <$set>::LANES,
            attend_tile: entry!(
                [$($feature)?],
                (keys: &[f32], values: &[f32], block: &mut Queries),
                attend::attend_tile::<$set>
            ),
            softmax: entry!([$($feature)?], (scores: &mut [f32]), plain::softmax),
            gelu_mul: entry!([$($feature)?], (gate: &[f32], up: &[f32], out: &mut [f32]), plain::gelu_mul),
            soft_cap: entry!([$($feature)?], (x: &[f32], cap: f32, out: &mut [f32]), plain::soft_cap),
            rms_norm: entry!(
                [$($feature)?],
                (x: &[f32], weight: Option<&[f32]>, eps: f32, out: &mut [f32]),
                plain::rms_norm
            ),
            layer_norm: entry!(
                [$($feature)?],
                (x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]),
                plain::layer_norm
            ),
            activate: entry!(
                [$($feature)?],
                (with: Activation, x: &[f32], out: &mut [f32]),
                plain::activate
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
            target_arch = "aarch64" => neon::available(),
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
        let halves: Vec<Half> = (0..=u16::MAX).map(Half).collect();
        for kernels in Kernels::available() {
            let mut found = vec![0.0; halves.len()];
            (kernels.add_weighted_halves)(&[1.0], &halves, 0, &mut found);
            for (half, found) in (0..=u16::MAX).zip(found) {
                let expected = float::half_to_f32(half);
                let same = found == expected || (found.is_nan() && expected.is_nan());
                assert!(same, "{}: {half:#06x} is {found}", kernels.name);
            }
        }
    }
}
