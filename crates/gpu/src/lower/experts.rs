//! Which rows go to which experts: one dispatch for all products with the same routing.

use rullama_graph::Value;

use super::{Count, Dispatch, Lowering, Slot};
use crate::{Experts, GpuError, params::GroupRowsParams};

/// What tells one grouping of rows from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct GroupKey {
    pub(super) routing: Value,
    pub(super) experts: Experts,
    /// Rows of a tile.
    pub(super) tile_rows: u32,
}

impl Lowering<'_> {
    /// The rows of a step by their experts, whose matrices are in this packed tensor; grouped now if no product has needed
    /// them before.
    pub(super) fn group(&mut self, key: GroupKey, packed: usize) -> Result<Slot, GpuError> {
        if let Some(&scratch) = self.groups.get(&key) {
            return Ok(Slot::Scratch(scratch));
        }
        let GroupKey { routing, experts, tile_rows } = key;
        let rows = self.target.graph.value(routing).shape.rows;
        let tiles = experts.tiles(self.count(rows), tile_rows);
        let scratch = self.program.claim(4 * u64::from(Experts::words(tiles, tile_rows)));
        let buffers = vec![("routing", self.experts(routing, packed)?), ("groups", Slot::Scratch(scratch))];
        self.push(Dispatch {
            what: format!("{}, by expert", self.name(routing)),
            spec: experts.group_rows(tile_rows),
            uniforms: vec![GroupRowsParams { tiles }.into()],
            buffers,
            workgroups: [Count::Fixed(experts.count), Count::Fixed(1), Count::Fixed(1)],
            weight_bytes: 0,
        });
        self.groups.insert(key, scratch);
        Ok(Slot::Scratch(scratch))
    }
}
