//! How a product of many rows is divided into tiles, by its shape.
//!
//! Two goals conflict. The more products a thread computes from each read of workgroup memory, the closer it comes to the
//! GPU's peak: 8 × 8 sums per thread need a quarter of the reads of 2 × 2. But each processor needs several workgroups, in a
//! number that does not leave half of the processors idle in the last round. Where a tile of 8 × 8 sums per thread would
//! leave too few threads, several *parts* of a workgroup share the width instead.
//!
//! Experts are different. Each fills tiles of its own, so there are always enough workgroups. But a tile of more rows than
//! an expert has is mostly empty, and a tile of fewer decodes the weights several times.

use crate::{
    Experts, KernelSpec,
    tuning::{
        BUSY_LARGE_TILES, BUSY_NARROW_TILES, BUSY_WIDE_TILES, FEW_TILE_ROWS, FEWEST_TILE_ROWS,
        LARGE_TILE_ROWS, expert_tiles,
    },
};

/// Values of a weight that are decoded at once. Rows of packed weights are whole chunks, also where the width is not.
const CHUNK: u32 = 32;

/// The constants of `linear_tile`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tiles {
    /// Rows of x in a tile.
    pub rows: u32,
    /// Outputs in a tile; pairs of gate and up if these are computed together.
    pub outputs: u32,
    /// Rows that a thread computes.
    pub lane_rows: u32,
    /// Rows of the weight that a thread multiplies with, of both weights of a pair together.
    pub lane_columns: u32,
    /// Groups of threads that share the width.
    pub parts: u32,
    /// Values along the width that are in workgroup memory at a time, a slab.
    pub depth: u32,
    /// Multiplications of four values along the width in one round of the inner loop.
    pub unroll: u32,
    /// Whether a slab is fetched while the previous one is multiplied.
    pub ahead: bool,
}

impl Tiles {
    pub(crate) const fn new(tile: [u32; 2], lane: [u32; 2], parts: u32, depth: u32) -> Self {
        let [rows, outputs] = tile;
        let [lane_rows, lane_columns] = lane;
        Self { rows, outputs, lane_rows, lane_columns, parts, depth, unroll: 1, ahead: true }
    }

    /// The tiles for a product of this shape: rows of x, outputs, and whether each output is a pair.
    pub fn choose(rows: u32, outputs: u32, paired: bool) -> Self {
        let enough = |tiles: Self, workgroups: u32| {
            let [x, y, _] = tiles.grid(rows, outputs);
            x * y >= workgroups
        };
        let all = [Self::LARGE, Self::WIDE, Self::NARROW, Self::SMALL, Self::FEW, Self::FEWEST];
        let [large, wide, narrow, small, few, fewest] = if paired { all.map(Self::paired) } else { all };
        if rows <= FEWEST_TILE_ROWS {
            fewest
        } else if rows <= FEW_TILE_ROWS {
            few
        } else if rows >= LARGE_TILE_ROWS && enough(large, BUSY_LARGE_TILES) {
            large
        } else if enough(wide, BUSY_WIDE_TILES) {
            wide
        } else if enough(narrow, BUSY_NARROW_TILES) {
            narrow
        } else {
            small
        }
    }

    /// The tiles for a product with experts in a step of `rows` rows. `paired`: each output is a pair.
    pub fn for_experts(experts: Experts, rows: u32, paired: bool) -> Self {
        let tiles = expert_tiles(rows * experts.used / experts.count);
        if paired { tiles.paired() } else { tiles }
    }

    /// Tiles of the same size in workgroup memory, for an epilogue that reads gate and up together.
    #[must_use]
    pub fn paired(self) -> Self {
        // A thread computes both, four outputs of each. More parts make up for fewer threads.
        let lane_columns = 8;
        let parts = (self.parts * lane_columns / self.lane_columns).min(self.depth / 4);
        let unroll = self.unroll.min(self.depth / 4 / parts);
        Self { outputs: self.outputs / 2, lane_columns, parts, unroll, ..self }
    }

    /// Threads per workgroup.
    pub fn lanes(&self, paired: bool) -> u32 {
        let columns = self.outputs * (1 + u32::from(paired));
        self.rows / self.lane_rows * (columns / self.lane_columns) * self.parts
    }

    /// The grid for this many rows and outputs.
    pub fn grid(&self, rows: u32, outputs: u32) -> [u32; 3] {
        [outputs.div_ceil(self.outputs), rows.div_ceil(self.rows), 1]
    }

    /// The recipe with these constants, for an input of this width.
    #[must_use]
    pub fn constants(&self, spec: KernelSpec, width: u32) -> KernelSpec {
        let ragged = !width.is_multiple_of(self.depth.min(CHUNK));
        spec.constant("TILE_ROWS", self.rows)
            .constant("TILE_OUTPUTS", self.outputs)
            .constant("LANE_ROWS", self.lane_rows)
            .constant("LANE_COLUMNS", self.lane_columns)
            .constant("PARTS", self.parts)
            .constant("DEPTH", self.depth)
            .constant("UNROLL", self.unroll)
            .constant("AHEAD", u32::from(self.ahead))
            .constant("RAGGED", u32::from(ragged))
    }
}
