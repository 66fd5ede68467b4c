//! From a graph to a program: fuse, then choose a kernel for every stage.
//!
//! | file | idea |
//! |---|---|
//! | `stage`, `fuse` | operations become stages, by a short list of patterns |
//! | `users` | who reads which value |
//! | `select` | a stage becomes dispatches: which kernel, which constants, how many workgroups |
//! | `linear` | the dispatches of products |
//! | `apart` | products that are left in pieces, for their readers to add up |
//! | `attention` | the dispatches of attention |
//! | `experts` | which rows go to which experts |
//! | `plain` | the dispatches of operations that fit no pattern |
//! | `program` | dispatches before they have buffers, and the scratch between them |
//!
//! Nothing here touches the GPU: what is chosen can be printed without one byte of weights.

mod apart;
mod attention;
mod experts;
mod fuse;
mod linear;
mod plain;
mod program;
mod select;
mod stage;
#[cfg(test)]
mod tests;
mod users;

use std::collections::HashMap;

use rullama_graph::{Graph, Rope, Rows, Value, Weight};

use experts::GroupKey;
pub(crate) use plain::plain_spec;
pub(crate) use program::{Count, Draft, Pause, Program, Scratch, Slot};
pub(crate) use select::{FEW_ROWS, RowProduct, RowShape};
use stage::Stage;

use crate::{
    CacheFormat, GpuError, Residency, attention::RowAttention, matrices::MatrixUse, weights::Manifest,
};

/// What tells one way to rotate from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RopeKey {
    pub(crate) head_width: u32,
    pub(crate) base: u32,
    pub(crate) pairs: u32,
    pub(crate) factors: Option<Weight>,
}

impl From<Rope> for RopeKey {
    fn from(rope: Rope) -> Self {
        let Rope { head_width, base, pairs, factors } = rope;
        Self { head_width, base: base.to_bits(), pairs, factors }
    }
}

/// What a graph is lowered for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) manifest: &'a Manifest,
    pub(crate) cache_format: CacheFormat,
    /// Rows of each cache.
    pub(crate) capacities: &'a [u32],
    /// Bytes of memory that the lanes of a workgroup can share.
    pub(crate) workgroup_memory: u32,
    /// Lanes of a subgroup, where lanes can talk to each other and all subgroups are of one size.
    pub(crate) subgroup: Option<u32>,
    /// Whether matrix units are used.
    pub(crate) matrices: MatrixUse,
    /// Whether operations are fused. Without, every one is a dispatch: slow, and the proof of the other way.
    pub(crate) fused: bool,
}

/// Lowers a graph for steps of up to `most_rows` rows; of exactly that many, where these are few.
pub(crate) fn lower(target: Target<'_>, most_rows: u32) -> Result<Program, GpuError> {
    let Target { graph, manifest, cache_format, workgroup_memory, subgroup, fused, .. } = target;
    let stages: Vec<Stage> = if fused {
        let widest_made = select::widest_made(workgroup_memory, subgroup);
        fuse::fuse(graph, manifest, cache_format, most_rows == 1, widest_made)
    } else {
        (0..graph.nodes().len()).map(Stage::Plain).collect()
    };
    let mut lowering = Lowering {
        target,
        most_rows,
        program: Program::default(),
        places: HashMap::new(),
        unmerged: HashMap::new(),
        added_up: if most_rows == 1 { apart::added_up(graph, &stages) } else { HashMap::new() },
        pieces: HashMap::new(),
        groups: HashMap::new(),
    };
    for (index, stage) in stages.iter().enumerate() {
        lowering.stage(stage, stages.get(index + 1))?;
    }
    let output = lowering.place(graph.output())?;
    lowering.program.output = Some(output.scratch);
    Ok(lowering.program)
}

/// Where a value is: columns of the rows of a scratch buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    scratch: Scratch,
    /// Its first float.
    at: u32,
    /// Floats from a row to the next.
    stride: u32,
}

impl Place {
    fn slot(self) -> Slot {
        Slot::Scratch(self.scratch)
    }
}

struct Lowering<'a> {
    target: Target<'a>,
    most_rows: u32,
    program: Program,
    places: HashMap<Value, Place>,
    /// Attention whose parts nobody has brought together yet.
    unmerged: HashMap<Value, Unmerged>,
    /// Products whose readers add pieces up, and how many at most.
    added_up: HashMap<Value, u32>,
    /// How many pieces products were left in.
    pieces: HashMap<Value, u32>,
    /// Rows by their experts, which products with the same routing share.
    groups: HashMap<GroupKey, Scratch>,
}

/// The sums of attention over parts of the context.
#[derive(Debug, Clone, Copy)]
struct Unmerged {
    attention: RowAttention,
    sums: Scratch,
    peaks: Scratch,
}

impl Lowering<'_> {
    /// Where a value is. With one row, the last row of a value is the value.
    fn place(&self, value: Value) -> Result<Place, GpuError> {
        use rullama_graph::Op;
        let mut value = value;
        while !self.places.contains_key(&value) {
            match self.target.graph.value(value).op {
                Op::LastRow { x } if self.most_rows == 1 => value = x,
                op => return Err(GpuError::Unsupported { operation: op.name() }),
            }
        }
        Ok(self.places[&value])
    }

    /// Where a value is whose reader takes whole rows only.
    fn whole(&self, value: Value) -> Result<Slot, GpuError> {
        let place = self.place(value)?;
        let width = self.target.graph.value(value).shape.width;
        assert!(place.at == 0 && place.stride == width, "only attention reads columns of stacked products");
        Ok(place.slot())
    }

    /// What a weight's reader finds its experts by: the routing, or the pages that its experts have after a stop.
    fn experts(&mut self, routing: Value, packed: usize) -> Result<Slot, GpuError> {
        let Target { graph, manifest, .. } = self.target;
        let slot = self.whole(routing)?;
        if manifest.packed[packed].residency != Residency::Paged {
            return Ok(slot);
        }
        let pool = manifest.pool_of(routing).expect("experts that come and go have a pool");
        if self.program.pauses.iter().all(|pause| pause.pool != pool) {
            let (routing, shape) = (self.place(routing)?.scratch, graph.value(routing).shape);
            let before = self.program.drafts.len();
            self.program.pauses.push(Pause { before, routing, rows: shape.rows, width: shape.width, pool });
        }
        Ok(Slot::Pages)
    }

    /// Where the rows of a table are that tokens name, and what names them.
    fn table(&self, packed: usize, shard: usize) -> [(&'static str, Slot); 2] {
        match self.target.manifest.packed[packed].residency {
            Residency::Rows => [("weight", Slot::Rows { packed }), ("tokens", Slot::RowNumbers)],
            _ => [("weight", Slot::Shard { packed, shard }), ("tokens", Slot::Tokens)],
        }
    }

    /// Sets room aside for a value.
    fn claim(&mut self, value: Value) -> Slot {
        let shape = self.target.graph.value(value).shape;
        let scratch = self.claim_rows(shape.rows, shape.width);
        self.places.insert(value, Place { scratch, at: 0, stride: shape.width });
        Slot::Scratch(scratch)
    }

    fn claim_rows(&mut self, rows: Rows, width: u32) -> Scratch {
        self.program.claim(4 * rows.count(self.most_rows as usize) as u64 * u64::from(width))
    }

    /// What a value is called, or what makes it.
    fn name(&self, value: Value) -> String {
        let node = self.target.graph.value(value);
        node.name.clone().unwrap_or_else(|| format!("{} {value}", node.op.name()))
    }

    fn push(&mut self, draft: Draft) {
        self.program.drafts.push(draft);
    }
}
