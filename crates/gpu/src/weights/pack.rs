//! From the blocks of a file to the planes that kernels read.
//!
//! GGUF blocks mix fields of different sizes and are rarely a multiple of four bytes, which suits no array of
//! words. A packed tensor has the same bits in another order: up to three *planes*, one after another in one
//! buffer, each with a whole number of words per row. Planes start at whole *quads* of four words, and the rows
//! of plane 0 are whole quads, so that kernels may load 16 bytes at once.
//!
//! | plane | holds |
//! |---|---|
//! | 0 | quants, or their low bits |
//! | 1 | scales, and offsets if the format has them |
//! | 2 | the high bits of quants that do not fit plane 0 |
//!
//! Every value is `scale · q + offset`, where scale and offset belong to a *group* of 16 or 32 values. Kernels
//! read four values of a group, or a *chunk* of 32 at once; `wgsl/shared/planes.wgsl` says how. The layout of each
//! format is described at the top of its fragment, `wgsl/format/<name>.wgsl`; the modules here are the other half
//! of that agreement: they write the planes, and they read them back on the CPU just as the fragment does on
//! the GPU.
//!
//! ```
//! use rullama_gguf::Format;
//! use rullama_gpu::weights::pack::Packing;
//!
//! // Two rows of 64 values: each row is two blocks of Q8_0.
//! let values: Vec<f32> = (0..128).map(|i| i as f32 / 16.0).collect();
//! let mut blocks = vec![0; 4 * Format::Q8_0.block_bytes()];
//! Format::Q8_0.encode(&values, &mut blocks)?;
//!
//! let packing = Packing::new(Format::Q8_0, 64).expect("Q8_0 has a kernel, and 64 is a multiple of 32");
//! let [mut quants, mut scales, mut extra] = packing.plane_words.map(|words| vec![0; 2 * words as usize]);
//! packing.pack_rows(&blocks, [&mut quants, &mut scales, &mut extra]);
//!
//! let mut second_row = vec![0.0; 64];
//! packing.unpack_row([&quants[16..], &scales[1..], &[]], &mut second_row);
//! assert!((second_row[63] - values[127]).abs() < 0.05);
//! # Ok::<(), rullama_gguf::FormatError>(())
//! ```

mod bits;
mod curve;
mod float4;
mod floats;
mod k_quants;
mod layout;
mod legacy;

use rullama_gguf::Format;

use layout::{Layout, Planes, PlanesMut};

/// The words that kernels load at once, 16 bytes of them.
const QUAD: u32 = 4;

/// The formats that kernels read as they are, in the order of their ids.
pub const PACKED_FORMATS: [Format; 16] = [
    Format::F32,
    Format::F16,
    Format::Q4_0,
    Format::Q4_1,
    Format::Q5_0,
    Format::Q5_1,
    Format::Q8_0,
    Format::Q2_K,
    Format::Q3_K,
    Format::Q4_K,
    Format::Q5_K,
    Format::Q6_K,
    Format::IQ4_NL,
    Format::IQ4_XS,
    Format::BF16,
    Format::MXFP4,
];

/// Evaluates an expression with the layout of a format, or returns `$otherwise` if it has none.
///
/// The one place that connects formats with layouts. A macro, because the layouts are types.
macro_rules! with_layout {
    ($format:expr, $layout:ident => $value:expr, $otherwise:expr) => {{
        macro_rules! with {
            ($found:ty) => {{
                type $layout = $found;
                $value
            }};
        }
        match $format {
            Format::F32 => with!(floats::F32),
            Format::F16 => with!(floats::F16),
            Format::BF16 => with!(floats::Bf16),
            Format::Q4_0 => with!(legacy::Q4_0),
            Format::Q4_1 => with!(legacy::Q4_1),
            Format::Q5_0 => with!(legacy::Q5_0),
            Format::Q5_1 => with!(legacy::Q5_1),
            Format::Q8_0 => with!(legacy::Q8_0),
            Format::Q2_K => with!(k_quants::Q2K),
            Format::Q3_K => with!(k_quants::Q3K),
            Format::Q4_K => with!(k_quants::Q4K),
            Format::Q5_K => with!(k_quants::Q5K),
            Format::Q6_K => with!(k_quants::Q6K),
            Format::IQ4_NL => with!(curve::Iq4Nl),
            Format::IQ4_XS => with!(curve::Iq4Xs),
            Format::MXFP4 => with!(float4::Mxfp4),
            _ => $otherwise,
        }
    }};
}

/// The format that the rows of a tensor have on the GPU.
///
/// Formats with kernels of their own stay as they are. The others are decoded and encoded again, to what
/// keeps their values best: whole numbers and doubles to floats that hold them, block formats to `Q8_0`, whose
/// steps are finer than theirs. A block format whose rows `Q8_0` cannot divide becomes `F16`.
pub fn resident_format(format: Format, width: u32) -> Format {
    match format {
        _ if PACKED_FORMATS.contains(&format) => format,
        // Every signed byte is a half float.
        Format::I8 => Format::F16,
        Format::I16 | Format::I32 | Format::I64 | Format::F64 => Format::F32,
        _ if (width as usize).is_multiple_of(Format::Q8_0.block_len()) => Format::Q8_0,
        _ => Format::F16,
    }
}

/// How rows of one format and width lie on the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Packing {
    /// The format of the rows.
    pub format: Format,
    /// How many values a row has.
    pub width: u32,
    /// How many words of each plane a row takes; 0 for a plane that the format does without.
    pub plane_words: [u32; 3],
}

impl Packing {
    /// The packing of rows of `width` values.
    ///
    /// `None` if the format has no kernel, if the rows are not whole blocks, or if a row is empty or too long
    /// to be addressed.
    pub fn new(format: Format, width: u32) -> Option<Self> {
        let row_bytes = format.row_bytes(u64::from(width))?;
        if width == 0 || isize::try_from(row_bytes).is_err() {
            return None;
        }
        let blocks = width / format.block_len() as u32;
        let plane_words = with_layout!(format, L => L::plane_words(blocks)?, return None);
        Some(Self { format, width, plane_words })
    }

    /// How many words a row takes, all planes together.
    pub fn row_words(&self) -> u32 {
        self.plane_words.iter().sum()
    }

    /// Where each plane of a buffer of `rows` rows starts, and where the buffer ends, in words. All are whole quads.
    pub fn plane_starts(&self, rows: u64) -> [u64; 4] {
        let [a, b, c] = self.plane_words.map(|words| (rows * u64::from(words)).next_multiple_of(QUAD.into()));
        [0, a, a + b, a + b + c]
    }

    /// How many rows fit into a buffer of this many bytes.
    pub fn rows_within(&self, bytes: u64) -> u64 {
        // What a plane may need after its last row, if rows are not whole quads.
        let ragged = self.plane_words.iter().filter(|words| !words.is_multiple_of(QUAD)).count() as u64;
        let padding = ragged * u64::from(QUAD - 1);
        (bytes / 4).saturating_sub(padding) / u64::from(self.row_words())
    }

    /// How many bytes a row takes in the file.
    pub fn bytes_per_row(&self) -> usize {
        self.width as usize / self.format.block_len() * self.format.block_bytes()
    }

    /// How many values share a scale and an offset; the `GROUP` of the format's fragment.
    pub fn group_len(&self) -> u32 {
        with_layout!(self.format, L => L::GROUP as u32, unreachable!("{} has no packing", self.format))
    }

    /// Packs whole rows. Every word of the planes is written.
    ///
    /// # Panics
    ///
    /// If `blocks` is not a whole number of rows, or a plane is not `plane_words` for each of them.
    pub fn pack_rows(&self, blocks: &[u8], planes: [&mut [u32]; 3]) {
        let row_bytes = self.bytes_per_row();
        assert!(
            blocks.len().is_multiple_of(row_bytes),
            "packing {}: {} bytes; expected a multiple of {row_bytes}",
            self.format,
            blocks.len(),
        );
        let rows = blocks.len() / row_bytes;
        let words = self.plane_words.map(|words| words as usize);
        for (plane, words) in planes.iter().zip(words) {
            let found = plane.len();
            assert_eq!(found, rows * words, "packing {}: words in a plane of {rows} rows", self.format);
        }
        with_layout!(self.format, L => pack_rows::<L>(blocks, row_bytes, planes, words),
            unreachable!("{} has no packing", self.format));
    }

    /// Reads one packed row as a kernel sees it. The planes start at this row and may go on beyond it.
    ///
    /// # Panics
    ///
    /// If `out` is not as long as the row is wide, or a plane is shorter than its `plane_words`.
    pub fn unpack_row(&self, planes: [&[u32]; 3], out: &mut [f32]) {
        assert_eq!(out.len(), self.width as usize, "unpacking {}: room for the values of a row", self.format);
        with_layout!(self.format, L => unpack_row::<L>(planes, out),
            unreachable!("{} has no packing", self.format));
    }
}

/// Packs row after row; the lengths fit each other.
fn pack_rows<L: Layout>(blocks: &[u8], row_bytes: usize, planes: PlanesMut<'_>, words: [usize; 3]) {
    let [mut quants, mut scales, mut extra] = planes;
    for row in blocks.chunks_exact(row_bytes) {
        let planes = [
            split_off(&mut quants, words[0]),
            split_off(&mut scales, words[1]),
            split_off(&mut extra, words[2]),
        ];
        L::pack_row(row, planes);
    }
}

/// Takes the first `len` words of what is left of a plane.
fn split_off<'a>(rest: &mut &'a mut [u32], len: usize) -> &'a mut [u32] {
    let (first, others) = std::mem::take(rest).split_at_mut(len);
    *rest = others;
    first
}

/// The values of a row, in the arithmetic of the kernels.
fn unpack_row<L: Layout>(planes: Planes<'_>, out: &mut [f32]) {
    for (group, out) in out.chunks_mut(L::GROUP).enumerate() {
        let [scale, offset] = L::group_scale(planes, group);
        for (word, out) in out.chunks_mut(4).enumerate() {
            for (out, q) in out.iter_mut().zip(L::group_quants(planes, group, word)) {
                *out = if L::HAS_OFFSET { scale * q + offset } else { scale * q };
            }
        }
    }
}
