//! Lowering: from a graph to a program. Operations are fused to stages, then each stage gets its kernels.
//!
//! | file | idea |
//! |---|---|
//! | `stage`, `fuse` | operations become stages, by a short list of patterns |
//! | `consumers` | which operations read each value |
//! | `select` | a stage becomes dispatches: which kernel, which constants, how many workgroups |
//! | `linear` | the dispatches of matrix products |
//! | `few_rows` | how products of a few rows are divided |
//! | `split_k` | products that leave partial sums to their consumer |
//! | `attention` | the dispatches of attention |
//! | `experts` | rows grouped by their experts |
//! | `plain` | the dispatches of operations that fit no pattern |
//! | `program` | dispatches before they have buffers, and the scratch buffers between them |
//!
//! Nothing here touches the GPU: a plan can be printed without reading weights.

mod attention;
mod consumers;
mod experts;
mod few_rows;
mod fuse;
mod linear;
mod plain;
mod program;
mod select;
mod split_k;
mod stage;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use rullama_graph::{Graph, Op, Rope, Rows, Value, Weight};

use experts::GroupKey;
pub(crate) use program::{Count, Dispatch, Pause, Program, Scratch, Slot};
use stage::Stage;

use crate::{
    CacheFormat, GpuError, Residency, attention::RowAttention, matrices::MatrixUse, weights::Manifest,
};

/// A rotation of heads, as a key: rotations with the same key share a table of angles.
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

/// A graph with all that decides how it is lowered: its weights, its caches and the device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoweringTarget<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) manifest: &'a Manifest,
    pub(crate) cache_format: CacheFormat,
    /// Rows of each cache.
    pub(crate) capacities: &'a [u32],
    /// Rows of each domain that the graph declares.
    pub(crate) domains: &'a [u32],
    /// Bytes of workgroup memory.
    pub(crate) workgroup_memory: u32,
    /// Threads per subgroup, where the device has subgroups of one size.
    pub(crate) subgroup: Option<u32>,
    /// Whether matrix units are used.
    pub(crate) matrices: MatrixUse,
    /// Whether operations are fused. Without fusion each is a dispatch: slow, and what fusion is tested against.
    pub(crate) fused: bool,
}

/// The steps that a program is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StepShape {
    /// The most rows of a step; up to [`tuning::FEW_ROWS`](crate::tuning), exactly as many.
    pub(crate) rows: u32,
    /// Whether each row is one of another conversation, and its last. Otherwise all rows are of one.
    pub(crate) decodes: bool,
}

impl StepShape {
    /// Steps of up to so many rows of one conversation.
    pub(crate) fn prompt(rows: u32) -> Self {
        Self { rows, decodes: rows == 1 }
    }

    /// A step without tokens: it has none but rows of domains, all of them exactly so many.
    pub(crate) fn of_domains(domains: &[u32]) -> Self {
        Self { rows: domains.iter().copied().max().unwrap_or(0), decodes: false }
    }

    /// Steps of one row of each of up to so many conversations.
    pub(crate) fn decode(conversations: u32) -> Self {
        Self { rows: conversations, decodes: true }
    }
}

impl LoweringTarget<'_> {
    /// How many rows there are in steps of a shape.
    fn count(&self, shape: StepShape, rows: Rows) -> u32 {
        match rows {
            Rows::Last if !shape.decodes => 1,
            Rows::Step | Rows::Last => shape.rows,
            Rows::Of(domain) => self.domains[domain.index()],
        }
    }
}

/// Lowers a graph for steps of one shape.
pub(crate) fn lower(target: LoweringTarget<'_>, shape: StepShape) -> Result<Program, GpuError> {
    let LoweringTarget { graph, fused, .. } = target;
    let stages: Vec<Stage> =
        if fused { fuse::fuse(target, shape) } else { (0..graph.nodes().len()).map(Stage::Plain).collect() };
    let mut lowering = Lowering {
        target,
        shape,
        program: Program { domains: target.domains.to_vec(), ..Program::default() },
        places: HashMap::new(),
        unmerged: HashMap::new(),
        split_k_limits: split_k::split_k_limits(graph, shape, &stages),
        partial_sums: HashMap::new(),
        groups: HashMap::new(),
    };
    for (index, stage) in stages.iter().enumerate() {
        lowering.stage(stage, stages.get(index + 1))?;
    }
    for (_, output) in graph.outputs() {
        let scratch = lowering.output(*output)?;
        lowering.program.outputs.push(scratch);
    }
    Ok(lowering.program)
}

/// The place of a value: some columns of the rows of a scratch buffer.
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
    target: LoweringTarget<'a>,
    shape: StepShape,
    program: Program,
    places: HashMap<Value, Place>,
    /// Attention whose splits are not merged yet.
    unmerged: HashMap<Value, Unmerged>,
    /// Products that may be computed split-K, with the most partial sums that their consumer adds up.
    split_k_limits: HashMap<Value, u32>,
    /// The number of partial sums of each product.
    partial_sums: HashMap<Value, u32>,
    /// Rows grouped by their experts. Products with the same routing share a group.
    groups: HashMap<GroupKey, Scratch>,
}

/// Attention over splits of the context: the sums and largest scores of each split.
#[derive(Debug, Clone, Copy)]
struct Unmerged {
    attention: RowAttention,
    sums: Scratch,
    peaks: Scratch,
}

impl Lowering<'_> {
    /// The place of a value. Where every row is the last of its conversation, the last rows of a value are that value.
    fn place(&self, value: Value) -> Result<Place, GpuError> {
        let mut value = value;
        while !self.places.contains_key(&value) {
            match self.target.graph.value(value).op {
                Op::LastRow { x } if self.shape.decodes => value = x,
                op => return Err(GpuError::Unsupported { operation: op.name() }),
            }
        }
        Ok(self.places[&value])
    }

    /// The buffer of a value, for a consumer that reads whole rows only.
    fn whole(&self, value: Value) -> Result<Slot, GpuError> {
        let place = self.place(value)?;
        assert!(self.is_whole(value, place), "only attention reads columns of stacked products");
        Ok(place.slot())
    }

    /// The buffer that names the experts of each row: the routing; or for paged experts their pages, written in a pause.
    fn experts(&mut self, routing: Value, packed: usize) -> Result<Slot, GpuError> {
        let LoweringTarget { graph, manifest, .. } = self.target;
        let slot = self.whole(routing)?;
        if manifest.packed[packed].residency != Residency::Paged {
            return Ok(slot);
        }
        let pool = manifest.pool_of(routing).expect("paged experts have a pool");
        if self.program.pauses.iter().all(|pause| pause.pool != pool) {
            let (routing, shape) = (self.place(routing)?.scratch, graph.value(routing).shape);
            let before = self.program.dispatches.len();
            self.program.pauses.push(Pause { before, routing, rows: shape.rows, width: shape.width, pool });
        }
        Ok(Slot::Pages)
    }

    /// The buffer with the rows of an embedding table, and the one with each token's row number in it.
    fn table(&self, packed: usize, shard: usize) -> [(&'static str, Slot); 2] {
        match self.target.manifest.packed[packed].residency {
            Residency::Rows => [("weight", Slot::Rows { packed }), ("tokens", Slot::RowNumbers)],
            _ => [("weight", Slot::Shard { packed, shard }), ("tokens", Slot::Tokens)],
        }
    }

    /// Allocates a scratch buffer for a value.
    fn claim(&mut self, value: Value) -> Slot {
        let shape = self.target.graph.value(value).shape;
        let scratch = self.claim_rows(shape.rows, shape.width);
        self.places.insert(value, Place { scratch, at: 0, stride: shape.width });
        Slot::Scratch(scratch)
    }

    fn claim_rows(&mut self, rows: Rows, width: u32) -> Scratch {
        self.program.claim(4 * u64::from(self.count(rows)) * u64::from(width))
    }

    fn count(&self, rows: Rows) -> u32 {
        self.target.count(self.shape, rows)
    }

    /// The buffer of an output, which has no other use: where a value shares its buffer, a copy.
    fn output(&mut self, value: Value) -> Result<Scratch, GpuError> {
        let place = self.place(value)?;
        let Program { inputs, outputs, .. } = &self.program;
        let is_given = inputs.contains(&place.scratch) || outputs.contains(&place.scratch);
        if self.is_whole(value, place) && !is_given {
            return Ok(place.scratch);
        }
        self.copy_of(value, place)
    }

    /// Whether a value is an output of the graph. Where every row is the last of its conversation, so are its last rows.
    fn is_output(&self, value: Value) -> bool {
        let graph = self.target.graph;
        graph.outputs().iter().any(|&(_, output)| {
            let of_last =
                matches!(graph.value(output).op, Op::LastRow { x } if self.shape.decodes && x == value);
            output == value || of_last
        })
    }

    fn is_whole(&self, value: Value, place: Place) -> bool {
        place.at == 0 && place.stride == self.target.graph.value(value).shape.width
    }

    /// The name of a value, or of the operation that computes it.
    fn name(&self, value: Value) -> String {
        let node = self.target.graph.value(value);
        node.name.clone().unwrap_or_else(|| format!("{} {value}", node.op.name()))
    }

    fn push(&mut self, dispatch: Dispatch) {
        self.program.dispatches.push(dispatch);
    }
}
