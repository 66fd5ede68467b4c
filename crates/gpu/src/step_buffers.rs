//! The buffers that steps of all conversations share, besides weights and caches.

use std::rc::Rc;

use rullama_graph::{Graph, Op, Rows, SoftRows};

use crate::{
    GpuError, GpuModel, ModelOptions, health::Outcome, options::decode_shape, rows::MOST_SLOTS,
    step_block::StepBlock, weights::RowTables,
};

/// The buffers of pauses.
#[derive(Clone)]
pub(crate) struct Paging {
    /// A routing with page indices in place of expert indices.
    pub(crate) pages: wgpu::Buffer,
    /// The readback buffer of routings.
    pub(crate) read: wgpu::Buffer,
}

/// The buffers of a step.
pub(crate) struct StepBuffers {
    pub(crate) tokens: wgpu::Buffer,
    pub(crate) soft_rows: wgpu::Buffer,
    pub(crate) step: StepBlock,
    /// Rows of tables that stay in the file.
    pub(crate) row_tables: Option<Rc<RowTables>>,
    pub(crate) paging: Option<Paging>,
    /// The graph's outputs, which all plans share. Tokens are sampled from the first.
    pub(crate) outputs: Vec<wgpu::Buffer>,
}

impl StepBuffers {
    pub(crate) fn new(model: &GpuModel, allocated: &mut Vec<Outcome>) -> Result<Self, GpuError> {
        let GpuModel { gpu, graph, manifest, options, .. } = model;
        let most_rows = options.most_rows();
        let mut storage = |what: &str, bytes: u64| -> Result<wgpu::Buffer, GpuError> {
            let (buffer, outcome) = gpu.allocate(what, bytes, || gpu.storage(what, bytes));
            allocated.extend(outcome.now()?);
            buffer
        };
        let tokens = storage("tokens", 4 * u64::from(MOST_SLOTS + most_rows))?;
        let soft_rows = storage("soft rows", 4 * u64::from(soft_width(graph)) * u64::from(most_rows))?;
        let names = graph.outputs().iter().map(|(name, _)| name);
        let outputs = names.zip(output_bytes(graph, options)).map(|(name, bytes)| storage(name, bytes));
        let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        let step_rows = most_rows.max(decode_shape(options.conversations).rows);
        let step = StepBlock::new(gpu, gpu.pipelines(), graph, manifest, step_rows)?;
        let (row_tables, outcome) =
            gpu.allocate("rows of tables", manifest.row_bytes(), || RowTables::new(gpu, manifest, most_rows));
        allocated.extend(outcome.now()?);
        let row_tables = row_tables?.map(Rc::new);
        let mut paging = None;
        if !manifest.pools.is_empty() {
            let bytes = manifest.routing_bytes(graph, most_rows);
            let (made, outcome) = gpu.allocate("pages", bytes, || {
                let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
                let read = gpu.buffer("routing", bytes, usage);
                Ok::<_, GpuError>(Paging { pages: gpu.storage("pages", bytes)?, read })
            });
            allocated.extend(outcome.now()?);
            paging = Some(made?);
        }
        Ok(Self { tokens, soft_rows, step, row_tables, paging, outputs })
    }

    /// Whether the host must see a token before a step can read it.
    pub(crate) fn host_reads(&self) -> bool {
        self.row_tables.is_some() || self.paging.is_some()
    }
}

/// Browsers free buffers late, so large ones are destroyed here.
impl Drop for StepBuffers {
    fn drop(&mut self) {
        let paging = self.paging.iter().flat_map(|paging| [&paging.pages, &paging.read]);
        paging.chain(&self.outputs).chain([&self.soft_rows]).for_each(wgpu::Buffer::destroy);
    }
}

/// Bytes of each output of a graph.
pub(crate) fn output_bytes(graph: &Graph, options: &ModelOptions) -> impl Iterator<Item = u64> {
    graph.outputs().iter().map(|&(_, output)| {
        let shape = graph.value(output).shape;
        let rows = if shape.rows == Rows::Last { options.conversations } else { options.most_rows() };
        4 * u64::from(shape.width) * u64::from(rows.max(options.conversations))
    })
}

/// Columns of the rows that towers compute; one for a graph that reads none.
pub(crate) fn soft_width(graph: &Graph) -> u32 {
    let widths = graph.nodes().iter().filter_map(|node| match node.op {
        Op::Embed { soft: SoftRows::Given, .. } => Some(node.shape.width),
        _ => None,
    });
    widths.max().unwrap_or(1)
}
