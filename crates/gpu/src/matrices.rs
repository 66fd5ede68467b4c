//! How a linear over many rows is cut for matrix units, by its shape.
//!
//! Where a GPU multiplies 16 × 16 matrices in half precision at several times the speed of its other arithmetic, prompts
//! are read with these. What is lost is below what quantisation has lost before; small products, where there is nothing to
//! gain, stay exact.

use crate::KernelSpec;

/// Rows and columns of the matrices.
pub(crate) const SIDE: u32 = 16;

/// Rows of a subgroup.
const SUBGROUP_ROWS: u32 = 32;

/// Workgroups below which other tiles keep a large GPU busier.
const BUSY: u32 = 48;

/// Rows below which a prompt is read fast enough exactly.
const FEWEST_ROWS: u32 = 65;

/// Widths below which there is little to gain, and exactness is worth more.
const NARROWEST: u32 = 1024;

/// Whether matrix units are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum MatrixUse {
    /// They are not there, or not to be trusted.
    #[default]
    Never,
    /// Where they are faster.
    WhereWorth,
    /// For every product of many rows that these tiles can compute: how they are tested.
    Always(MatrixTiles),
}

impl MatrixUse {
    /// The tiles for a product of this shape, if it is computed on matrix units.
    pub(crate) fn tiles(
        self,
        [rows, width, outputs]: [u32; 3],
        paired: bool,
        workgroup_memory: u32,
    ) -> Option<MatrixTiles> {
        let tiles = match self {
            Self::Never => None,
            Self::WhereWorth => MatrixTiles::choose(rows, width, outputs, paired),
            Self::Always(tiles) => width.is_multiple_of(tiles.depth).then_some(tiles),
        };
        tiles.filter(|tiles| tiles.workgroup_memory() <= workgroup_memory)
    }
}

/// The constants of `linear_matrix`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatrixTiles {
    /// Subgroups below each other, with 32 rows each.
    pub grid_rows: u32,
    /// Subgroups beside each other.
    pub grid_columns: u32,
    /// Matrices beside each other that a subgroup has.
    pub pieces: u32,
    /// Grids of subgroups that share the width.
    pub parts: u32,
    /// Values along the width that are in workgroup memory at a time.
    pub depth: u32,
}

impl MatrixTiles {
    /// Lanes of the subgroups that workgroups are made of: those of all GPUs that have been seen with matrices of 16 × 16.
    pub const SUBGROUP: u32 = 32;

    /// 64 × 128, the width shared by two.
    pub const WIDE: Self = Self { grid_rows: 2, grid_columns: 2, pieces: 4, parts: 2, depth: 64 };
    /// 32 × 64, the width shared by four: for rows and outputs so few that the other would leave cores idle.
    pub const SMALL: Self = Self { grid_rows: 1, grid_columns: 2, pieces: 2, parts: 4, depth: 128 };
    /// All that are chosen from, the best first.
    pub const ALL: [Self; 2] = [Self::WIDE, Self::SMALL];

    /// The tiles for a linear of this shape, if matrix units are worth it.
    pub fn choose(rows: u32, width: u32, outputs: u32, paired: bool) -> Option<Self> {
        if rows < FEWEST_ROWS {
            return None;
        }
        Self::ALL.into_iter().find(|tiles| {
            let [x, y, _] = tiles.grid(rows, outputs, paired);
            x * y >= BUSY && width >= NARROWEST && width.is_multiple_of(tiles.depth)
        })
    }

    /// Bytes of workgroup memory: two tiles in half precision with gaps, and two pieces of each subgroup.
    fn workgroup_memory(&self) -> u32 {
        let quads = (self.rows() + self.outputs(false)) * (self.depth / 4 + 2);
        8 * quads + 4 * 2 * SIDE * SIDE * self.grid_rows * self.grid_columns * self.parts
    }

    /// Rows of a tile.
    pub fn rows(&self) -> u32 {
        SUBGROUP_ROWS * self.grid_rows
    }

    /// Outputs of a tile; pairs, where gate and up are computed together.
    pub fn outputs(&self, paired: bool) -> u32 {
        SIDE * self.pieces * self.grid_columns / if paired { 2 } else { 1 }
    }

    /// The workgroups for so many rows and outputs.
    pub fn grid(&self, rows: u32, outputs: u32, paired: bool) -> [u32; 3] {
        [outputs.div_ceil(self.outputs(paired)), rows.div_ceil(self.rows()), 1]
    }

    /// The recipe with these constants.
    #[must_use]
    pub fn constants(&self, spec: KernelSpec) -> KernelSpec {
        spec.constant("SUBGROUP", Self::SUBGROUP)
            .constant("GRID_ROWS", self.grid_rows)
            .constant("GRID_COLUMNS", self.grid_columns)
            .constant("PIECES", self.pieces)
            .constant("PARTS", self.parts)
            .constant("DEPTH", self.depth)
    }
}
