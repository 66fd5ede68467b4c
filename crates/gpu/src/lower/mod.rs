//! Lowering: from a graph to a program. Operations are fused to stages, then each stage gets its kernels.
//!
//! | file | idea |
//! |---|---|
//! | `stage`, `fuse` | operations become stages, by a short list of patterns |
//! | `consumers` | which operations read each value |
//! | `select` | a stage becomes dispatches: which kernel, which constants, how many workgroups |
//! | `linear` | the dispatches of matrix products |
//! | `split_k` | which products may store partial sums, which their consumer adds |
//! | `attention` | the dispatches of attention |
//! | `experts` | groups rows by expert |
//! | `plain` | the dispatches of unfused operations |
//! | `program` | the resulting program: dispatches that name their buffers, and the scratch buffers |
//!
//! Nothing here touches the GPU: a plan can be printed without reading weights.

mod attention;
mod consumers;
mod experts;
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
pub(crate) use program::{BufferRef, Count, Dispatch, Pause, Program, Scratch};
pub(crate) use select::has_integer_quants;
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

/// Everything that lowering depends on: the graph, its weights, its caches and the limits of the device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoweringTarget<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) manifest: &'a Manifest,
    pub(crate) cache_format: CacheFormat,
    /// Rows of each cache.
    pub(crate) capacities: &'a [u32],
    /// Rows of each domain that the graph declares.
    pub(crate) domains: &'a [u32],
    /// Bytes of workgroup memory that a kernel may use.
    pub(crate) workgroup_memory: u32,
    /// Threads per subgroup, if the device has subgroups and all have the same size.
    pub(crate) subgroup: Option<u32>,
    /// For which products matrix units are used.
    pub(crate) matrices: MatrixUse,
    /// Whether operations are fused. If not, each operation is one dispatch or one per weight shard: slow, but simple. Tests
    /// compare fused plans with it.
    pub(crate) fused: bool,
}

/// The kind of step that a program computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StepShape {
    /// The maximum number of rows. In shapes of up to [`FEW_ROWS`](crate::tuning::FEW_ROWS) rows, the exact number.
    pub(crate) rows: u32,
    /// True for decoding: each row is the last token of a different conversation. False for a prompt: all rows belong to one
    /// conversation.
    pub(crate) decodes: bool,
}

impl StepShape {
    /// A prompt step: up to `rows` tokens of one conversation.
    pub(crate) fn prompt(rows: u32) -> Self {
        Self { rows, decodes: rows == 1 }
    }

    /// A step without tokens: its rows are those of the domains, in exactly these numbers.
    pub(crate) fn of_domains(domains: &[u32]) -> Self {
        Self { rows: domains.iter().copied().max().unwrap_or(0), decodes: false }
    }

    /// A decode step: one row for each of up to `conversations` conversations.
    pub(crate) fn decode(conversations: u32) -> Self {
        Self { rows: conversations, decodes: true }
    }
}

impl LoweringTarget<'_> {
    /// The number of rows of this kind in a step of this shape.
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

/// Where a value is stored: a range of columns in a scratch buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    scratch: Scratch,
    /// Index of its first element.
    at: u32,
    /// Elements from one row to the next.
    stride: u32,
}

impl Place {
    fn buffer(self) -> BufferRef {
        BufferRef::Scratch(self.scratch)
    }
}

/// The program so far, and what later stages need to know about the values it computes.
struct Lowering<'a> {
    target: LoweringTarget<'a>,
    shape: StepShape,
    program: Program,
    places: HashMap<Value, Place>,
    /// Attention results that are still one partial result per split of the context. The consumer merges them.
    unmerged: HashMap<Value, Unmerged>,
    /// Products that may be computed split-K, with the maximum number of partial sums.
    split_k_limits: HashMap<Value, u32>,
    /// How many partial sums each product stores; one if it is not computed split-K.
    partial_sums: HashMap<Value, u32>,
    /// Rows grouped by expert. Products with the same routing share a grouping.
    groups: HashMap<GroupKey, Scratch>,
}

/// Attention over splits of the context: the weighted sums, and the largest score and total weight, of each split.
#[derive(Debug, Clone, Copy)]
struct Unmerged {
    attention: RowAttention,
    sums: Scratch,
    peaks: Scratch,
}

impl Lowering<'_> {
    /// Where a value is stored. When decoding, every row is a last row, so `last_row(x)` is `x` itself.
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

    /// The buffer of a value that has the buffer to itself. Panics if the value is a range of columns.
    fn own_buffer(&self, value: Value) -> Result<BufferRef, GpuError> {
        let place = self.place(value)?;
        assert!(self.fills_buffer(value, place), "only attention reads a range of columns");
        Ok(place.buffer())
    }

    /// The buffer with the expert indices of each row. For paged experts: the buffer with page indices, which the host writes
    /// during a pause.
    fn experts(&mut self, routing: Value, packed: usize) -> Result<BufferRef, GpuError> {
        let LoweringTarget { graph, manifest, .. } = self.target;
        let slot = self.own_buffer(routing)?;
        if manifest.packed[packed].residency != Residency::Paged {
            return Ok(slot);
        }
        let pool = manifest.pool_of(routing).expect("paged experts have a pool");
        if self.program.pauses.iter().all(|pause| pause.pool != pool) {
            let (routing, shape) = (self.place(routing)?.scratch, graph.value(routing).shape);
            let before = self.program.dispatches.len();
            self.program.pauses.push(Pause { before, routing, rows: shape.rows, width: shape.width, pool });
        }
        Ok(BufferRef::Pages)
    }

    /// The buffer with rows of an embedding table, and the buffer with the index of each token's row in it.
    fn table(&self, packed: usize, shard: usize) -> [(&'static str, BufferRef); 2] {
        match self.target.manifest.packed[packed].residency {
            Residency::Rows => [("weight", BufferRef::Rows { packed }), ("tokens", BufferRef::RowNumbers)],
            _ => [("weight", BufferRef::Shard { packed, shard }), ("tokens", BufferRef::Tokens)],
        }
    }

    /// Allocates a scratch buffer for a value.
    fn allocate(&mut self, value: Value) -> BufferRef {
        let shape = self.target.graph.value(value).shape;
        let scratch = self.allocate_rows(shape.rows, shape.width);
        self.places.insert(value, Place { scratch, at: 0, stride: shape.width });
        BufferRef::Scratch(scratch)
    }

    fn allocate_rows(&mut self, rows: Rows, width: u32) -> Scratch {
        self.program.allocate(4 * u64::from(self.count(rows)) * u64::from(width))
    }

    fn count(&self, rows: Rows) -> u32 {
        self.target.count(self.shape, rows)
    }

    /// The scratch buffer of a graph output. An output needs a buffer of its own, so a value that shares its buffer is copied.
    fn output(&mut self, value: Value) -> Result<Scratch, GpuError> {
        let place = self.place(value)?;
        let Program { inputs, outputs, .. } = &self.program;
        let is_taken = inputs.contains(&place.scratch) || outputs.contains(&place.scratch);
        if self.fills_buffer(value, place) && !is_taken {
            return Ok(place.scratch);
        }
        self.copy_of(value, place)
    }

    /// True if a value is a graph output. When decoding, also if `last_row` of it is one.
    fn is_output(&self, value: Value) -> bool {
        let graph = self.target.graph;
        graph.outputs().iter().any(|&(_, output)| {
            let last_row_of =
                matches!(graph.value(output).op, Op::LastRow { x } if self.shape.decodes && x == value);
            output == value || last_row_of
        })
    }

    /// True if a value is all that its buffer holds.
    fn fills_buffer(&self, value: Value, place: Place) -> bool {
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
