//! Grouping the rows of a step by expert.
//!
//! Without it, a step of many rows would read an expert's weights for every row that uses it. Instead, pairs of a row and one
//! of its experts are grouped into tiles of one expert each, and a workgroup of `linear_tile` computes a tile. Only the GPU
//! knows how many tiles there are, so a grid has room for the maximum, and workgroups without a tile exit at once.

use crate::{Kernel, KernelSpec};

/// Threads per workgroup of the grouping, as many as WebGPU guarantees.
const LANES: u32 = 256;

/// The most experts whose counters fit into the workgroup memory that WebGPU guarantees.
const MOST_COUNT: u32 = 2048;

/// The most experts of a row for which no grid is longer than WebGPU allows.
const MOST_USED: u32 = 64;

/// How many experts there are, and how many of them a row uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Experts {
    /// How many there are.
    pub count: u32,
    /// How many a row uses.
    pub used: u32,
}

impl Experts {
    /// Whether rows can be grouped by them.
    pub(crate) fn can_be_grouped(&self) -> bool {
        self.count <= MOST_COUNT && self.used <= MOST_USED
    }

    /// The most tiles of this many rows: the last tile of every expert may have only one pair.
    pub fn tiles(&self, rows: u32, tile_rows: u32) -> u32 {
        let pairs = rows * self.used;
        (pairs + pairs.min(self.count) * (tile_rows - 1)) / tile_rows
    }

    /// Words of this many tiles: the expert and the pairs of each.
    pub fn words(tiles: u32, tile_rows: u32) -> u32 {
        tiles * (1 + tile_rows)
    }

    /// The kernel that groups rows, with a workgroup for each expert.
    pub fn group_rows(&self, tile_rows: u32) -> KernelSpec {
        KernelSpec::new(Kernel::GroupRows)
            .constant("LANES", LANES)
            .constant("EXPERTS", self.count)
            .constant("USED", self.used)
            .constant("TILE_ROWS", tile_rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The worst distribution of rows over experts needs exactly the tiles that are allocated.
    #[test]
    fn the_worst_case_has_room() {
        for (count, used, rows, tile_rows) in
            [(128, 8, 512, 32), (128, 8, 9, 8), (3, 3, 65, 16), (5, 1, 4, 8)]
        {
            let pairs = rows * used;
            // One pair for each expert, and the rest in whole tiles of some expert.
            let busy = pairs.min(count);
            let worst = busy + (pairs - busy) / tile_rows;
            assert_eq!(Experts { count, used }.tiles(rows, tile_rows), worst);
        }
    }
}
