//! The kernels of attention that are fast: what they are made of, and how large their grids are.
//!
//! A row that is decoded takes `attend_row`, and `merge` or the same arithmetic in whatever reads its result. Steps of
//! several rows take `query_heads`, `cache_heads` and `attend_tile`. Heads of other widths ([`CacheLayout::fits`]) go the general way.

use rullama_graph::{Ahead, AttendShape};

use crate::{
    CacheFormat, CacheLayout,
    kernel::{Fragment, Kernel, KernelSpec},
    rows::MOST_STEP_ROWS,
    tuning::{GLOBAL_SPLITS, HEAD_THREADS, MERGE_SLICES, SLIDING_SPLITS},
};

/// Says that a norm has no weight, where the place of one is asked for.
pub const NO_WEIGHT: u32 = u32::MAX;

/// The lanes of a workgroup, the most that WebGPU guarantees.
const LANES: u32 = 256;

/// Pairs of a row and a head that one workgroup of `attend_tile` answers.
pub(crate) const TILE_PAIRS: u32 = 32;

/// The most eights of columns of a key that a lane of `attend_row` holds.
const MOST_PIECES: u32 = 4;

/// Attention of one row: `attend_row` and `merge`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowAttention {
    /// Heads, and what they see.
    pub shape: AttendShape,
    /// How keys and values are kept.
    pub layout: CacheFormat,
    /// Whether the layer makes keys and values of its own, or reads those of another.
    pub owns: bool,
    /// Lanes of a subgroup, where those that share a key need no memory to add up.
    pub subgroup: Option<u32>,
    /// Lanes that share a key: a power of two from eight up, and no more than a subgroup has.
    pub parts: u32,
    /// Keys that are worth a workgroup of their own.
    pub split_keys: u32,
    /// The most workgroups that share the context.
    pub most_splits: u32,
}

impl RowAttention {
    /// With what is best on a large GPU. `subgroup` is the lanes of a subgroup, where all have the same number.
    pub fn new(shape: AttendShape, layout: CacheFormat, owns: bool, subgroup: Option<u32>) -> Self {
        let (split_keys, most_splits) =
            if shape.mask.window.is_some() { SLIDING_SPLITS } else { GLOBAL_SPLITS };
        let eighths = shape.head_width / 8;
        // Subgroups of which a lane would have more than it can hold are no help.
        let subgroup = subgroup.filter(|&lanes| lanes >= 8 && eighths.div_ceil(lanes) <= MOST_PIECES);
        let most = subgroup.map_or(16, |lanes| lanes.min(64));
        let parts = eighths.next_power_of_two().clamp(8, most);
        Self { shape, layout, owns, subgroup, parts, split_keys, most_splits }
    }

    /// The kernel that attends.
    pub fn attend(&self) -> KernelSpec {
        let head_width = self.shape.head_width;
        let spec = KernelSpec::new(Kernel::AttendRow)
            .with(Fragment::Turn)
            .with(Fragment::Splits)
            .with(self.layout.reader());
        let spec = match self.owns {
            true => spec.with(Fragment::Halves).with(self.layout.writer()).with(Fragment::OwnKv),
            false => spec.with(Fragment::BorrowKv),
        };
        let spec = match self.subgroup {
            Some(lanes) => spec.with(Fragment::ScoresSubgroup).constant("SUBGROUP", lanes),
            None => spec.with(Fragment::ScoresWorkgroup),
        };
        spec.constant("LANES", LANES)
            // A lane has a quad of each half of the head that it norms.
            .constant("TEAM", if head_width > 256 { 64 } else { 32 })
            .constant("PARTS", self.parts)
            .constant("PIECES", (head_width / 8).div_ceil(self.parts).next_power_of_two())
            .constant("HEAD_WIDTH", head_width)
            .constant("HEAD_VECTORS", self.layout.head_vectors(head_width))
            .constant("SPLIT_KEYS", self.split_keys)
            .constant("MOST_SPLITS", self.most_splits)
    }

    /// The kernel that merges what its workgroups found.
    pub fn merge(&self) -> KernelSpec {
        KernelSpec::new(Kernel::Merge)
            .with(Fragment::Splits)
            .with_reduce(self.subgroup)
            .constant("LANES", LANES)
            .constant("SLICES", MERGE_SLICES)
            .constant("HEAD_WIDTH", self.shape.head_width)
            .constant("SPLIT_KEYS", self.split_keys)
            .constant("MOST_SPLITS", self.most_splits)
    }

    /// Workgroups that share the context of a row that sees keys up to `end`.
    pub fn splits(&self, end: u32) -> u32 {
        // A window may begin before the keys that a row sees of its own span, so it is no bound there; grids may be larger
        // than they need be.
        let seen = self.shape.mask.window.map_or(end, |window| (window + self.span_rows()).min(end));
        seen.div_ceil(self.split_keys).clamp(1, self.most_splits)
    }

    /// Rows that a row with a window may see after itself.
    fn span_rows(&self) -> u32 {
        if self.shape.mask.ahead == Ahead::Nothing { 0 } else { MOST_STEP_ROWS }
    }

    /// The workgroups that attend from a row at `position`.
    pub fn attend_grid(&self, position: u32) -> [u32; 3] {
        [self.shape.heads, self.splits(position + 1), 1]
    }

    /// The workgroups that merge.
    pub fn merge_grid(&self) -> [u32; 3] {
        let quads = self.shape.head_width / 4;
        [quads.div_ceil(LANES / MERGE_SLICES), self.shape.heads, 1]
    }

    /// Bytes of `sums` and of `peaks`, at the longest context.
    pub fn scratch_bytes(&self) -> [u64; 2] {
        let heads = u64::from(self.most_splits) * u64::from(self.shape.heads);
        [4 * heads * u64::from(self.shape.head_width), 8 * heads]
    }
}

/// The kernel that norms and turns the query heads of several rows.
pub fn query_heads(head_width: u32) -> KernelSpec {
    KernelSpec::new(Kernel::QueryHeads)
        .with(Fragment::Turn)
        .with(Fragment::Team)
        .constant("LANES", LANES)
        .constant("TEAM", HEAD_THREADS)
        .constant("HEAD_WIDTH", head_width)
}

/// The workgroups of [`query_heads`].
pub fn query_heads_grid(heads: u32, rows: u32) -> [u32; 3] {
    [heads.div_ceil(LANES / HEAD_THREADS), rows, 1]
}

/// The kernel that norms, turns and stores the keys and values of several rows. Its grid is `[kv_heads, rows, 1]`.
pub fn cache_heads(layout: CacheFormat, head_width: u32) -> KernelSpec {
    KernelSpec::new(Kernel::CacheHeads)
        .with(Fragment::Turn)
        .with(Fragment::Team)
        .with(layout.reader())
        .with(Fragment::Halves)
        .with(layout.writer())
        .constant("LANES", 2 * HEAD_THREADS)
        .constant("TEAM", HEAD_THREADS)
        .constant("HEAD_WIDTH", head_width)
        .constant("HEAD_VECTORS", layout.head_vectors(head_width))
}

/// The kernel that attends from several rows of one conversation to its cache.
pub fn attend_tile(layout: CacheFormat, head_width: u32) -> KernelSpec {
    attend_tile_over(layout, head_width).with(Fragment::SeenInCache)
}

/// The kernel that attends from several rows, without the fragment that says which keys they see.
pub(crate) fn attend_tile_over(layout: CacheFormat, head_width: u32) -> KernelSpec {
    KernelSpec::new(Kernel::AttendTile)
        .with(layout.reader())
        .constant("HEAD_WIDTH", head_width)
        .constant("HEAD_VECTORS", layout.head_vectors(head_width))
}

/// The workgroups of [`attend_tile`] for as many rows as are asked.
pub fn attend_tile_grid(shape: &AttendShape, rows: u32) -> [u32; 3] {
    let pairs = rows * (shape.heads / shape.kv_heads);
    [pairs.div_ceil(TILE_PAIRS), shape.kv_heads, 1]
}
