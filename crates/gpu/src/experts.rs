//! The rows of a step by the experts that they are routed to.
//!
//! A step of many rows would read an expert's weights for every row that uses it. Instead, pairs of a row and one of its
//! experts are brought into tiles of one expert each, and a tile is what `linear_tile` computes at once. Which tiles there
//! are is known only on the GPU, so a grid has room for as many as there can be, and those without an expert end at once.

use crate::{Kernel, KernelSpec};

/// The lanes that look through the pairs of a step.
const LANES: u32 = 256;

/// Experts beyond which counting them would take more workgroup memory than WebGPU guarantees.
const MOST_COUNT: u32 = 2048;

/// Experts of a row beyond which a grid might be longer than WebGPU allows.
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

    /// The most tiles that so many rows can come to: every expert that has pairs may leave all but one place of its last
    /// tile empty.
    pub fn tiles(&self, rows: u32, tile_rows: u32) -> u32 {
        let pairs = rows * self.used;
        (pairs + pairs.min(self.count) * (tile_rows - 1)) / tile_rows
    }

    /// Words that this many tiles take: of each its expert, and its pairs.
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

    /// Rows that spread over experts as badly as they can need the tiles that are set aside, and no fewer would do.
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
