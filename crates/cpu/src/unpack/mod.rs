//! Rows of quantised weights, unpacked to one byte for each value.
//!
//! Every format becomes the same three arrays: quants, and a scale and a minimum for each group of 16, such that a value is
//! `scale · quant − minimum`. One product kernel then serves all formats, and a prompt unpacks each row once for all of
//! its tokens. An unpacked row has a few kilobytes and stays in the processor's first cache.

mod blocks32;
mod k_quants;
mod tables;

use rullama_gguf::Format;

use crate::activations::{GROUP, STRIDE};

/// One row of weights.
#[derive(Debug, Default)]
pub(crate) struct Unpacked {
    /// Values from 0 to 127, or signed bytes if `signed`.
    pub(crate) quants: Vec<u8>,
    pub(crate) scales: Vec<f32>,
    /// Nothing reads these of a signed format, which has none.
    pub(crate) minimums: Vec<f32>,
    pub(crate) signed: bool,
}

/// Whether products with this format use activations of eight bits.
pub(crate) fn is_integer(format: Format) -> bool {
    use Format::*;
    matches!(format, Q4_0 | Q4_1 | Q5_0 | Q5_1 | Q8_0 | Q2_K | Q3_K | Q4_K | Q5_K | Q6_K | IQ4_NL | IQ4_XS)
}

impl Unpacked {
    /// Makes room for a row of `width` values of `format`.
    pub(crate) fn prepare(&mut self, format: Format, width: usize) {
        use Format::*;
        self.signed = matches!(format, Q8_0 | IQ4_NL | IQ4_XS);
        let stride = width.next_multiple_of(STRIDE);
        self.quants.resize(stride, 0);
        self.scales.resize(stride / GROUP, 0.0);
        self.minimums.resize(stride / GROUP, 0.0);
        // The activations beyond a row's end are zero, but zero times what another row left here may be NaN.
        self.quants[width..].fill(0);
        self.scales[width / GROUP..].fill(0.0);
        self.minimums[width / GROUP..].fill(0.0);
    }
}

/// What a block is unpacked into.
struct Block<'a, const LEN: usize, const GROUPS: usize> {
    quants: &'a mut [u8; LEN],
    scales: &'a mut [f32; GROUPS],
    minimums: &'a mut [f32; GROUPS],
}

/// Calls a function with each block and the places of its values.
///
/// This is a macro because a function passed as a value is called through a shim, which would keep `#[inline(always)]` and
/// with it the caller's instructions from reaching it.
macro_rules! for_each_block {
    ($blocks:expr, $row:expr, $unpack:path) => {{
        let quants = $row.quants.as_chunks_mut().0.iter_mut();
        let scales = $row.scales.as_chunks_mut().0.iter_mut();
        let minimums = $row.minimums.as_chunks_mut().0.iter_mut();
        let blocks = $blocks.as_chunks().0.iter();
        for (((block, quants), scales), minimums) in blocks.zip(quants).zip(scales).zip(minimums) {
            $unpack(block, Block { quants, scales, minimums });
        }
    }};
}

/// Unpacks one row of whole blocks. The row was prepared for the format.
#[inline(always)]
pub(crate) fn unpack(format: Format, blocks: &[u8], row: &mut Unpacked) {
    match format {
        Format::Q4_0 => for_each_block!(blocks, row, blocks32::q4_0),
        Format::Q4_1 => for_each_block!(blocks, row, blocks32::q4_1),
        Format::Q5_0 => for_each_block!(blocks, row, blocks32::q5_0),
        Format::Q5_1 => for_each_block!(blocks, row, blocks32::q5_1),
        Format::Q8_0 => for_each_block!(blocks, row, blocks32::q8_0),
        Format::Q2_K => for_each_block!(blocks, row, k_quants::q2_k),
        Format::Q3_K => for_each_block!(blocks, row, k_quants::q3_k),
        Format::Q4_K => for_each_block!(blocks, row, k_quants::q4_k),
        Format::Q5_K => for_each_block!(blocks, row, k_quants::q5_k),
        Format::Q6_K => for_each_block!(blocks, row, k_quants::q6_k),
        Format::IQ4_NL => for_each_block!(blocks, row, tables::iq4_nl),
        Format::IQ4_XS => for_each_block!(blocks, row, tables::iq4_xs),
        _ => unreachable!("{format} is multiplied as floats"),
    }
}

/// `LEN` bytes of a block from `at` on.
#[inline(always)]
fn field<const LEN: usize>(block: &[u8], at: usize) -> &[u8; LEN] {
    block[at..].first_chunk().expect("the field lies inside the block")
}

/// The half float at `at`.
#[inline(always)]
fn half(block: &[u8], at: usize) -> f32 {
    crate::float::half_to_f32(u16::from_le_bytes(*field(block, at)))
}
