//! Groups the rows of a step by expert. Products with the same routing share one grouping.

use rullama_graph::Value;

use super::{BufferRef, Count, Dispatch, Lowering};
use crate::{Experts, GpuError, params::GroupRowsParams};

/// The key of a grouping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct GroupKey {
    pub(super) routing: Value,
    pub(super) experts: Experts,
    /// Rows per tile.
    pub(super) tile_rows: u32,
}

impl Lowering<'_> {
    /// The buffer in which rows are grouped by expert. Adds the grouping dispatch when it is first needed. `packed` holds the
    /// experts' matrices.
    pub(super) fn group(&mut self, key: GroupKey, packed: usize) -> Result<BufferRef, GpuError> {
        if let Some(&scratch) = self.groups.get(&key) {
            return Ok(BufferRef::Scratch(scratch));
        }
        let GroupKey { routing, experts, tile_rows } = key;
        let rows = self.target.graph.value(routing).shape.rows;
        let tiles = experts.tiles(self.count(rows), tile_rows);
        let scratch = self.program.allocate(4 * u64::from(Experts::words(tiles, tile_rows)));
        let buffers =
            vec![("routing", self.experts(routing, packed)?), ("groups", BufferRef::Scratch(scratch))];
        self.push(Dispatch {
            label: format!("{}, by expert", self.name(routing)),
            spec: experts.group_rows(tile_rows),
            uniforms: vec![GroupRowsParams { tiles }.into()],
            buffers,
            workgroups: [Count::Fixed(experts.count), Count::Fixed(1), Count::Fixed(1)],
            weight_bytes: 0,
        });
        self.groups.insert(key, scratch);
        Ok(BufferRef::Scratch(scratch))
    }
}
