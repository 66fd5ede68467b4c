//! The kernels of fused attention: their recipes and their grids.
//!
//! Decoding uses `attend_row`, and then `merge`, or a consumer that merges in its prologue. Prompts use `query_heads`,
//! `cache_heads` and `attend_tile`; towers use `attend_matrix` on matrix units. Heads of widths that these do not support ([`CacheLayout::fits`]) use the unfused kernels.

use rullama_graph::{Ahead, AttendShape};

use crate::{
    CacheFormat, CacheLayout, MatrixTiles,
    kernel::{Fragment, Kernel, KernelSpec},
    matrices::SIDE,
    rows::MOST_STEP_ROWS,
    tuning::{
        ATTEND_MATRIX_TEAMS, GLOBAL_SPLITS, HEAD_THREADS, KEY_THREADS, KEY_THREADS_WITHOUT_SUBGROUPS,
        MERGE_SLICES, SLIDING_SPLITS,
    },
};

/// Stands for the index of a norm's weights if the norm has none.
pub const NO_WEIGHT: u32 = u32::MAX;

/// Threads per workgroup, as many as WebGPU guarantees.
const LANES: u32 = 256;

/// Pairs of a row and a head per workgroup of `attend_tile`: `PAIRS` in its text.
pub(crate) const TILE_PAIRS: u32 = 32;

/// A thread of `attend_row` has names for this many pieces, of eight columns each, of a key.
const MOST_PIECES: u32 = 4;

/// Attention of one row: `attend_row` and `merge`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowAttention {
    /// The heads and their mask.
    pub shape: AttendShape,
    /// The format of the cache.
    pub layout: CacheFormat,
    /// Whether the kernel also stores the row's key and value.
    pub stores_kv: bool,
    /// Threads per subgroup, if those that share a key add their scores without workgroup memory.
    pub subgroup: Option<u32>,
    /// Threads that share a key: a power of two, at least eight, and at most a subgroup.
    pub parts: u32,
    /// Keys of a split.
    pub split_keys: u32,
    /// The most splits of the context.
    pub most_splits: u32,
}

impl RowAttention {
    /// With the sizes that are best on a large GPU. `subgroup` is the number of threads per subgroup, if all subgroups have the
    /// same.
    pub fn new(shape: AttendShape, layout: CacheFormat, stores_kv: bool, subgroup: Option<u32>) -> Self {
        let (split_keys, most_splits) =
            if shape.mask.window.is_some() { SLIDING_SPLITS } else { GLOBAL_SPLITS };
        let eighths = shape.head_width / 8;
        let (fewest, most) = KEY_THREADS;
        // Subgroups are not used if a thread would have to hold more of a key than it can.
        let subgroup = subgroup.filter(|&size| size >= fewest && eighths.div_ceil(size) <= MOST_PIECES);
        let most = subgroup.map_or(KEY_THREADS_WITHOUT_SUBGROUPS, |size| size.min(most));
        let parts = eighths.next_power_of_two().clamp(fewest, most);
        Self { shape, layout, stores_kv, subgroup, parts, split_keys, most_splits }
    }

    /// The kernel that attends.
    pub fn attend(&self) -> KernelSpec {
        let head_width = self.shape.head_width;
        let spec = KernelSpec::new(Kernel::AttendRow)
            .with(Fragment::Turn)
            .with(Fragment::Splits)
            .with(self.layout.reader());
        let spec = match self.stores_kv {
            true => spec.with(Fragment::Halves).with(self.layout.writer()).with(Fragment::OwnKv),
            false => spec.with(Fragment::BorrowKv),
        };
        let spec = match self.subgroup {
            Some(size) => spec.with(Fragment::ScoresSubgroup).constant("SUBGROUP", size),
            None => spec.with(Fragment::ScoresWorkgroup),
        };
        spec.constant("LANES", LANES)
            // To normalise a head, a thread has four columns of each half, so that 32 threads suffice for 256 columns.
            .constant("TEAM", if head_width > 256 { 64 } else { 32 })
            .constant("PARTS", self.parts)
            .constant("PIECES", (head_width / 8).div_ceil(self.parts).next_power_of_two())
            .constant("HEAD_WIDTH", head_width)
            .constant("HEAD_VECTORS", self.layout.head_vectors(head_width))
            .constant("SPLIT_KEYS", self.split_keys)
            .constant("MOST_SPLITS", self.most_splits)
    }

    /// The kernel that merges the splits.
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

    /// The number of splits for a row that sees keys up to `end`.
    pub fn splits(&self, end: u32) -> u32 {
        // A row may also see later rows of its span, and so more keys than the window has. A grid may be larger than
        // necessary.
        let seen = self.shape.mask.window.map_or(end, |window| (window + self.span_rows()).min(end));
        seen.div_ceil(self.split_keys).clamp(1, self.most_splits)
    }

    /// The most rows after itself that a row may see.
    fn span_rows(&self) -> u32 {
        if self.shape.mask.ahead == Ahead::Nothing { 0 } else { MOST_STEP_ROWS }
    }

    /// The grid of [`attend`](Self::attend) for a row at `position`.
    pub fn attend_grid(&self, position: u32) -> [u32; 3] {
        [self.shape.heads, self.splits(position + 1), 1]
    }

    /// The grid of [`merge`](Self::merge) for one row.
    pub fn merge_grid(&self) -> [u32; 3] {
        let quads = self.shape.head_width / 4;
        [quads.div_ceil(LANES / MERGE_SLICES), self.shape.heads, 1]
    }

    /// Bytes of `sums` and of `peaks` per row, with the most splits.
    pub fn scratch_bytes(&self) -> [u64; 2] {
        let heads = u64::from(self.most_splits) * u64::from(self.shape.heads);
        [4 * heads * u64::from(self.shape.head_width), 8 * heads]
    }
}

/// The kernel that normalises and rotates the query heads of several rows.
pub fn query_heads(head_width: u32) -> KernelSpec {
    KernelSpec::new(Kernel::QueryHeads)
        .with(Fragment::Turn)
        .with(Fragment::Team)
        .constant("LANES", LANES)
        .constant("TEAM", HEAD_THREADS)
        .constant("HEAD_WIDTH", head_width)
}

/// The grid of [`query_heads`].
pub fn query_heads_grid(heads: u32, rows: u32) -> [u32; 3] {
    [heads.div_ceil(LANES / HEAD_THREADS), rows, 1]
}

/// The kernel that normalises, rotates and stores the keys and values of several rows. Its grid is `[kv_heads, rows, 1]`.
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

/// The kernel by which several rows of one conversation attend to its cache.
pub fn attend_tile(layout: CacheFormat, head_width: u32) -> KernelSpec {
    attend_tile_over(layout, head_width).with(Fragment::SeenInCache)
}

/// The same without the fragment that says which keys the rows see.
pub(crate) fn attend_tile_over(layout: CacheFormat, head_width: u32) -> KernelSpec {
    KernelSpec::new(Kernel::AttendTile)
        .with(layout.reader())
        .constant("HEAD_WIDTH", head_width)
        .constant("HEAD_VECTORS", layout.head_vectors(head_width))
}

/// Rows of a workgroup of [`attend_matrix`]: one for each thread.
pub const MATRIX_ATTENTION_ROWS: u32 = MatrixTiles::SUBGROUP * ATTEND_MATRIX_TEAMS;

/// Keys of a tile of [`attend_matrix`]: `KEYS` in its text.
const MATRIX_KEYS: u32 = 32;

/// The widest head that [`attend_matrix`] is written for.
const MOST_MATRIX_HEAD: u32 = 80;

/// The kernel by which rows attend to each other, all of them, on matrix units; none for heads that do not fit. Its grid is a
/// workgroup for each [`MATRIX_ATTENTION_ROWS`] rows, and the heads.
pub fn attend_matrix(head_width: u32, workgroup_memory: u32) -> Option<KernelSpec> {
    let (keys, rows) = (MATRIX_KEYS, MATRIX_ATTENTION_ROWS);
    let quads = head_width.div_ceil(SIDE) * 4 + 2;
    let halves = (2 * keys * quads + rows * (keys / 4 + 2)).max(rows * quads);
    let floats = rows * (keys + 4) + 4;
    let fits = head_width.is_multiple_of(4) && head_width <= MOST_MATRIX_HEAD;
    (fits && 8 * halves + 4 * floats <= workgroup_memory).then(|| {
        KernelSpec::new(Kernel::AttendMatrix)
            .constant("SUBGROUP", MatrixTiles::SUBGROUP)
            .constant("TEAMS", ATTEND_MATRIX_TEAMS)
            .constant("HEAD_WIDTH", head_width)
    })
}

/// The grid of [`attend_tile`] for a number of rows.
pub fn attend_tile_grid(shape: &AttendShape, rows: u32) -> [u32; 3] {
    let pairs = rows * (shape.heads / shape.kv_heads);
    [pairs.div_ceil(TILE_PAIRS), shape.kv_heads, 1]
}
