//! How a product of many rows is divided for matrix units, by its shape.
//!
//! Some GPUs multiply 16 × 16 matrices in half precision at several times the speed of their other arithmetic. Prompts are
//! read with these. The loss is smaller than that of quantisation. Small products, which gain nothing, stay in single
//! precision.

use crate::{
    KernelSpec,
    tuning::{BUSY_MATRIX_TILES, MATRIX_ROWS, MATRIX_WIDTH},
};

/// Rows and columns of the matrices.
pub(crate) const SIDE: u32 = 16;

/// Rows of a subgroup.
const SUBGROUP_ROWS: u32 = 32;

/// Whether matrix units are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum MatrixUse {
    /// The device has none, or failed the self-test with them.
    #[default]
    Never,
    /// For products that they compute faster.
    WhereWorth,
    /// For every product of many rows that these tiles can compute. Used by the self-test.
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
            Self::Always(tiles) => Some(tiles),
        };
        tiles.filter(|tiles| tiles.workgroup_memory() <= workgroup_memory)
    }
}

/// The constants of `linear_matrix`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatrixTiles {
    /// Subgroups in a column of the tile, with 32 rows each.
    pub grid_rows: u32,
    /// Subgroups in a row of the tile.
    pub grid_columns: u32,
    /// Matrices side by side that a subgroup computes.
    pub pieces: u32,
    /// Grids of subgroups that share the width.
    pub parts: u32,
    /// Values along the width that are in workgroup memory at a time.
    pub depth: u32,
}

impl MatrixTiles {
    /// Threads per subgroup: that of all known GPUs with matrices of 16 × 16.
    pub const SUBGROUP: u32 = 32;

    /// All tiles to choose from, the preferred ones first.
    pub const ALL: [Self; 2] = [Self::WIDE, Self::SMALL];

    /// The tiles for a product of this shape, if matrix units are faster.
    pub fn choose(rows: u32, width: u32, outputs: u32, paired: bool) -> Option<Self> {
        if rows < MATRIX_ROWS {
            return None;
        }
        Self::ALL.into_iter().find(|tiles| {
            let [x, y, _] = tiles.grid(rows, outputs, paired);
            x * y >= BUSY_MATRIX_TILES && width >= MATRIX_WIDTH
        })
    }

    /// Bytes of workgroup memory: slabs of x and of the weight in half precision with padding, and two matrices of sums of each
    /// subgroup.
    fn workgroup_memory(&self) -> u32 {
        let quads = (self.rows() + self.outputs(false)) * (self.depth / 4 + 2);
        8 * quads + 4 * 2 * SIDE * SIDE * self.grid_rows * self.grid_columns * self.parts
    }

    /// Rows of a tile.
    pub fn rows(&self) -> u32 {
        SUBGROUP_ROWS * self.grid_rows
    }

    /// Outputs of a tile; pairs of gate and up if these are computed together.
    pub fn outputs(&self, paired: bool) -> u32 {
        SIDE * self.pieces * self.grid_columns / if paired { 2 } else { 1 }
    }

    /// The grid for this many rows and outputs.
    pub fn grid(&self, rows: u32, outputs: u32, paired: bool) -> [u32; 3] {
        [outputs.div_ceil(self.outputs(paired)), rows.div_ceil(self.rows()), 1]
    }

    /// The recipe with these constants, for an input of this width.
    #[must_use]
    pub fn constants(&self, spec: KernelSpec, width: u32) -> KernelSpec {
        let ragged = !width.is_multiple_of(self.depth);
        spec.constant("SUBGROUP", Self::SUBGROUP)
            .constant("GRID_ROWS", self.grid_rows)
            .constant("GRID_COLUMNS", self.grid_columns)
            .constant("PIECES", self.pieces)
            .constant("PARTS", self.parts)
            .constant("DEPTH", self.depth)
            .constant("RAGGED", u32::from(ragged))
    }
}
