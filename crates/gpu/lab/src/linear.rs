//! Matrix products by the kernels that read packed weights, of any shape and format.

use std::fmt;

use rullama_gguf::Format;
use rullama_gpu::{
    Experts, Fragment, GpuError, Kernel, KernelSpec, Tiles, params::LinearParams, weights::pack::Packing,
};

use crate::{Lab, Step};

/// Operations that one submission should have, so that its own cost does not matter.
const LONG: f64 = 2e10;

/// The most dispatches in one submission.
const MOST_DISPATCHES: f64 = 40.0;

/// Submissions whose mean is taken.
const ROUNDS: u32 = 10;

/// The product of rows with one matrix, or of each row with the matrices of its experts. The weight is not sharded, and the
/// rows of the input and of the result start at the beginning of their buffers.
#[derive(Debug, Clone, Copy)]
pub struct Product {
    /// Columns of the weight.
    pub width: u32,
    /// Outputs of a row, for each of its experts.
    pub outputs: u32,
    /// Whether each output combines a gate and an up value, so that a matrix has two rows per output.
    pub paired: bool,
    /// The format of the weight.
    pub format: Format,
    /// The experts, if there are any. In a paired product, all experts of a row read the same input. In others, each reads
    /// its own, as in the down projection.
    pub experts: Option<Experts>,
}

impl Product {
    /// How the weight is packed.
    ///
    /// # Panics
    ///
    /// If the format has no kernel, or the width is not a multiple of its block.
    pub fn packing(&self) -> Packing {
        Packing::new(self.format, self.width).expect("a format with kernels, and rows of whole blocks")
    }

    /// Rows of one matrix.
    pub fn matrix_rows(&self) -> u32 {
        self.outputs * if self.paired { 2 } else { 1 }
    }

    /// Rows of the weight, of all matrices together.
    pub fn weight_rows(&self) -> u32 {
        self.matrix_rows() * self.experts.map_or(1, |experts| experts.count)
    }

    /// Matrices that a row is multiplied with.
    fn used(&self) -> u32 {
        self.experts.map_or(1, |experts| experts.used)
    }

    /// Columns of a row of the input.
    pub fn x_width(&self) -> u32 {
        if self.paired { self.width } else { self.width * self.used() }
    }

    /// Columns of a row of the result.
    pub fn y_width(&self) -> u32 {
        self.outputs * self.used()
    }

    /// Multiplications and additions of so many rows.
    pub fn operations(&self, rows: u32) -> f64 {
        2.0 * f64::from(rows * self.used()) * f64::from(self.width) * f64::from(self.matrix_rows())
    }

    /// The uniform of its kernels.
    pub fn params(&self) -> LinearParams {
        let packing = self.packing();
        let [a, b, c] = packing.plane_words;
        LinearParams {
            plane_at: plane_at(&packing, self.weight_rows()),
            plane_words: [a, b, c, 0],
            width: self.width,
            outputs: self.outputs,
            matrix_rows: self.matrix_rows(),
            shard_rows: self.weight_rows(),
            pair: if self.paired { self.outputs } else { 0 },
            x_stride: self.x_width(),
            expert_stride: if self.experts.is_some() && !self.paired { self.width } else { 0 },
            y_stride: self.y_width(),
            routing_width: self.experts.map_or(0, |experts| 2 * experts.used),
            factor: 1.0,
            cap: 1.0,
            ..bytemuck::Zeroable::zeroed()
        }
    }

    /// The kernel for this product, as [`spec()`] makes it.
    ///
    /// # Panics
    ///
    /// If the format has no kernel.
    pub fn spec(&self, kernel: Kernel) -> KernelSpec {
        spec(kernel, self.format, if self.paired { Fragment::GeluPair } else { Fragment::Store })
    }

    /// Random words for the packed weight. Read as f32 or f16, they are small finite numbers.
    pub fn random_weight(&self) -> Vec<u32> {
        let [.., end] = self.packing().plane_starts(self.weight_rows().into());
        let mut random = Random(1);
        // The highest bit of each half's exponent is clear, so none is an infinity or NaN, nor very large.
        (0..end).map(|_| (random.bits() ^ random.bits() << 16) & 0xbfff_bfff).collect()
    }

    /// Seconds that one product of so many rows takes, with as many in each submission as make it long enough.
    pub fn time(
        &self,
        lab: &Lab<'_>,
        spec: &KernelSpec,
        buffers: &[(&str, &wgpu::Buffer)],
        workgroups: [u32; 3],
        rows: u32,
    ) -> Result<f64, GpuError> {
        let dispatches = (LONG / self.operations(rows)).clamp(1.0, MOST_DISPATCHES) as usize;
        let params = self.params();
        let prepare = |_| lab.prepare(spec, &[params.into()], buffers, workgroups);
        let kernels: Vec<_> = (0..dispatches).map(prepare).collect();
        Ok(lab.time(&kernels, &Step::new(rows, 0), ROUNDS)? / dispatches as f64)
    }
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = if self.paired { "2 × " } else { "" };
        f.pad(&format!("{} → {times}{} {}", self.width, self.outputs, self.format))
    }
}

/// The recipe of a kernel for products. Still missing is what depends on the kernel: the order of rows and the tile sizes.
///
/// # Panics
///
/// If the format has no kernel.
pub fn spec(kernel: Kernel, format: Format, epilogue: Fragment) -> KernelSpec {
    KernelSpec::new(kernel)
        .with(Fragment::LinearParams)
        .with(Fragment::Planes)
        .with(Fragment::Gelu)
        .with(Fragment::format(format).expect("a format with kernels"))
        .with(epilogue)
}

/// The field `plane_at` of the uniform: where the planes of a weight of so many rows start.
pub fn plane_at(packing: &Packing, rows: u32) -> [u32; 4] {
    let [a, b, c, _] = packing.plane_starts(rows.into()).map(|at| at as u32);
    [a, b, c, 0]
}

/// Packs the blocks of a file into the words of a weight's buffer: the planes one after another.
///
/// # Panics
///
/// If the blocks are not whole rows.
pub fn packed(packing: &Packing, blocks: &[u8]) -> Vec<u32> {
    let rows = blocks.len() / packing.bytes_per_row();
    let mut planes = packing.plane_words.map(|words| vec![0; rows * words as usize]);
    packing.pack_rows(blocks, planes.each_mut().map(Vec::as_mut_slice));
    let [a, b, c, end] = packing.plane_starts(rows as u64).map(|at| at as usize);
    let mut words = vec![0; end];
    for (start, plane) in [a, b, c].into_iter().zip(planes) {
        words[start..start + plane.len()].copy_from_slice(&plane);
    }
    words
}

/// Tile sizes as columns of a printed table.
pub fn describe(tiles: &Tiles, paired: bool) -> String {
    let Tiles { rows, outputs, lane_rows, lane_columns, parts, depth, unroll, ahead } = tiles;
    let lanes = tiles.lanes(paired);
    let ahead = if *ahead { "ahead" } else { "     " };
    format!(
        "{rows:3}×{outputs:<3} lane {lane_rows}×{lane_columns} parts {parts:2} depth {depth} unroll {unroll} \
         {ahead} {lanes:3} lanes"
    )
}

/// Random numbers that are the same in every run.
pub struct Random(pub u32);

impl Random {
    /// The next 24 bits.
    pub fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0 >> 8
    }
}
