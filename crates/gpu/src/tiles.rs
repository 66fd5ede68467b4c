//! How a linear over many rows is cut into tiles, by its shape.
//!
//! Two things pull against each other. The more products a lane makes of what it reads from workgroup memory, the
//! nearer it comes to the GPU's arithmetic: 8 × 8 sums for a lane need a quarter of the reads of 2 × 2. But there must
//! be several workgroups for each core, in a number that does not leave half of them idle in the last round. Where a
//! tile of 8 × 8 sums a lane would leave too few lanes, several *parts* of a workgroup share the width instead.
//!
//! Experts are different: each fills tiles of its own, so that there are workgroups enough, but a tile of more rows than
//! an expert has is mostly empty, and one of fewer decodes the weights once more for each.

use crate::{Experts, KernelSpec};

/// Workgroups of `WIDE` that keep a large GPU busy: each has only 64 lanes.
const MANY: u32 = 768;
/// Workgroups of `LARGE` that do.
const LARGE_MANY: u32 = 256;
/// Workgroups of `NARROW` that do.
const SOME: u32 = 256;

/// The constants of `linear_tile`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tiles {
    /// Rows of x in a tile.
    pub rows: u32,
    /// Outputs in a tile; pairs, where gate and up are computed together.
    pub outputs: u32,
    /// Rows that a lane computes.
    pub lane_rows: u32,
    /// Rows of the weight that a lane computes with; of both weights of a pair together.
    pub lane_columns: u32,
    /// Groups of lanes that share the width.
    pub parts: u32,
    /// Values along the width that are in workgroup memory at a time.
    pub depth: u32,
    /// Multiplications of four values along the width that are written one after another.
    pub unroll: u32,
    /// Whether a slab is fetched while the one before it is multiplied.
    pub ahead: bool,
}

impl Tiles {
    /// 128 × 128, 256 lanes: fewest reads from memory for each product.
    pub const LARGE: Self = Self::new([128, 128], [8, 8], 1, 16);
    /// 64 × 64, 64 lanes: as many products for each read from workgroup memory, and four times the workgroups.
    pub const WIDE: Self = Self::new([64, 64], [8, 8], 1, 16);
    /// 64 × 32 with the width shared by four: as `WIDE`, with twice the workgroups and four times the lanes.
    pub const NARROW: Self = Self::new([64, 32], [8, 8], 4, 32);
    /// 32 × 32 with the width shared by four: for outputs so few that `NARROW` would leave cores idle.
    pub const SMALL: Self = Self::new([32, 32], [4, 4], 4, 64);
    /// 32 × 16 with the width shared by eight: for few rows, where the outputs alone must fill the GPU.
    pub const FEW: Self = Self::new([32, 16], [4, 4], 8, 64);
    /// 16 × 16 with the width shared by sixteen: for half as many rows.
    pub const FEWEST: Self = Self::new([16, 16], [4, 4], 16, 64);
    /// 32 × 64 with the width shared by four: for experts of about so many rows.
    pub const FLAT: Self = Self::new([32, 64], [8, 8], 4, 32);
    /// 16 × 64, likewise.
    pub const FLATTER: Self = Self::new([16, 64], [4, 8], 4, 32);
    /// 8 × 64, likewise: as few rows as lanes can share.
    pub const FLATTEST: Self = Self::new([8, 64], [4, 8], 4, 32);

    const fn new(tile: [u32; 2], lane: [u32; 2], parts: u32, depth: u32) -> Self {
        let [rows, outputs] = tile;
        let [lane_rows, lane_columns] = lane;
        Self { rows, outputs, lane_rows, lane_columns, parts, depth, unroll: 1, ahead: true }
    }

    /// The tiles for a linear of this shape: rows of x, outputs, and whether each output is a pair.
    pub fn choose(rows: u32, outputs: u32, paired: bool) -> Self {
        let enough = |tiles: Self, workgroups: u32| {
            let [x, y, _] = tiles.grid(rows, outputs);
            x * y >= workgroups
        };
        let all = [Self::LARGE, Self::WIDE, Self::NARROW, Self::SMALL, Self::FEW, Self::FEWEST];
        let [large, wide, narrow, small, few, fewest] = if paired { all.map(Self::paired) } else { all };
        match rows {
            0..=16 => fewest,
            17..=32 => few,
            _ if rows >= 128 && enough(large, LARGE_MANY) => large,
            _ if enough(wide, MANY) => wide,
            _ if enough(narrow, SOME) => narrow,
            _ => small,
        }
    }

    /// The tiles for a linear of experts that share so many rows, and whether each output is a pair.
    ///
    /// They have about as many rows as an expert has on average, from two thirds to four thirds of that: larger ones would
    /// be mostly empty, smaller ones decode a weight again and again.
    pub fn for_experts(experts: Experts, rows: u32, paired: bool) -> Self {
        let tiles = match rows * experts.used / experts.count {
            0..=12 => Self::FLATTEST,
            13..=24 => Self::FLATTER,
            25..=48 => Self::FLAT,
            _ => Self::WIDE,
        };
        if paired { tiles.paired() } else { tiles }
    }

    /// As large in workgroup memory, for an epilogue that takes gate and up together.
    #[must_use]
    pub fn paired(self) -> Self {
        // The two belong to one lane, which so has four of each; more parts make up for fewer lanes, a quad for each.
        let lane_columns = 8;
        let parts = (self.parts * lane_columns / self.lane_columns).min(self.depth / 4);
        let unroll = self.unroll.min(self.depth / 4 / parts);
        Self { outputs: self.outputs / 2, lane_columns, parts, unroll, ..self }
    }

    /// How many lanes a workgroup has.
    pub fn lanes(&self, paired: bool) -> u32 {
        let columns = self.outputs * (1 + u32::from(paired));
        self.rows / self.lane_rows * (columns / self.lane_columns) * self.parts
    }

    /// The workgroups for so many rows and outputs.
    pub fn grid(&self, rows: u32, outputs: u32) -> [u32; 3] {
        [outputs.div_ceil(self.outputs), rows.div_ceil(self.rows), 1]
    }

    /// The recipe with these constants.
    #[must_use]
    pub fn constants(&self, spec: KernelSpec) -> KernelSpec {
        spec.constant("TILE_ROWS", self.rows)
            .constant("TILE_OUTPUTS", self.outputs)
            .constant("LANE_ROWS", self.lane_rows)
            .constant("LANE_COLUMNS", self.lane_columns)
            .constant("PARTS", self.parts)
            .constant("DEPTH", self.depth)
            .constant("UNROLL", self.unroll)
            .constant("AHEAD", u32::from(self.ahead))
    }
}
