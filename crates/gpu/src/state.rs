//! A model on the GPU, and what it remembers of one conversation.

use std::{collections::HashMap, rc::Rc};

use rullama_gguf::Model;
use rullama_graph::{Graph, Op, Rope};

use crate::{
    Gpu, GpuError, Plan,
    kernel::{Fragment, Pipelines},
    lower::{RopeKey, Surroundings, lower},
    readback,
    weights::Resident,
};

/// Rows of a step while a prompt is read.
const MOST_ROWS: usize = 64;

/// How keys and values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CacheFormat {
    /// Exactly.
    F32,
    /// In half precision.
    #[default]
    F16,
}

impl CacheFormat {
    fn bytes(self) -> u64 {
        match self {
            Self::F32 => 4,
            Self::F16 => 2,
        }
    }

    pub(crate) fn store(self) -> Fragment {
        match self {
            Self::F32 => Fragment::StoreF32,
            Self::F16 => Fragment::StoreF16,
        }
    }

    pub(crate) fn load(self) -> Fragment {
        match self {
            Self::F32 => Fragment::LoadF32,
            Self::F16 => Fragment::LoadF16,
        }
    }
}

/// A graph with its weights on the GPU.
pub struct GpuModel {
    gpu: Gpu,
    graph: Graph,
    weights: Resident,
    pipelines: Pipelines,
    context: usize,
    cache_format: CacheFormat,
    vocabulary: u32,
}

impl GpuModel {
    /// Uploads the weights that `graph` names. Conversations may have `context` tokens.
    pub async fn load(
        gpu: Gpu,
        model: Rc<Model>,
        graph: Graph,
        context: usize,
        cache_format: CacheFormat,
    ) -> Result<Self, GpuError> {
        let weights = Resident::upload(&gpu, &model, &graph).await?;
        let table = graph.nodes().iter().find_map(|node| match node.op {
            Op::Embed { table, .. } => Some(graph.weight(table).rows),
            _ => None,
        });
        let vocabulary = table.ok_or(GpuError::Unsupported { operation: "a graph without tokens" })?;
        let pipelines = Pipelines::new(&gpu);
        Ok(Self { gpu, graph, weights, pipelines, context, cache_format, vocabulary })
    }

    /// The GPU it is on.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Tokens a step may have.
    pub fn rows_at_once(&self) -> usize {
        MOST_ROWS
    }

    /// The state of a new conversation.
    pub fn state(self: &Rc<Self>) -> Result<GpuState, GpuError> {
        GpuState::new(self.clone())
    }
}

/// What a model remembers of one conversation.
pub struct GpuState {
    model: Rc<GpuModel>,
    tokens: wgpu::Buffer,
    step: wgpu::Buffer,
    step_group: wgpu::BindGroup,
    turns: Vec<Turns>,
    one: Plan,
    many: Plan,
    read: wgpu::Buffer,
    len: usize,
}

/// The table of one way to rotate.
struct Turns {
    rope: Rope,
    factors: Option<Vec<f32>>,
    buffer: wgpu::Buffer,
}

impl GpuState {
    fn new(model: Rc<GpuModel>) -> Result<Self, GpuError> {
        let gpu = &model.gpu;
        let graph = &model.graph;
        let tokens = gpu.storage("tokens", 4 * MOST_ROWS as u64)?;
        let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST;
        let step = gpu.buffer("step", 16, usage);
        let mut caches = Vec::new();
        for info in graph.caches() {
            let bytes = model.context as u64 * u64::from(info.width()) * model.cache_format.bytes();
            let what = format!("the cache of layer {}", info.layer);
            caches.push((gpu.storage(&what, bytes)?, gpu.storage(&what, bytes)?));
        }
        let mut turns: HashMap<RopeKey, wgpu::Buffer> = HashMap::new();
        let mut tables = Vec::new();
        for node in graph.nodes() {
            let Op::Rope { rope, .. } = node.op else { continue };
            if turns.contains_key(&rope.into()) {
                continue;
            }
            let buffer = gpu.storage("turns", 4 * u64::from(rope.head_width) * MOST_ROWS as u64)?;
            turns.insert(rope.into(), buffer.clone());
            let factors = rope.factors.map(|factors| {
                let name = &graph.weight(factors).tensor;
                model.weights.rope_factors[name].clone()
            });
            tables.push(Turns { rope, factors, buffer });
        }
        let around = Surroundings {
            gpu,
            graph,
            weights: &model.weights,
            pipelines: &model.pipelines,
            caches: &caches,
            cache_format: model.cache_format,
            tokens: &tokens,
            turns: &turns,
        };
        let (one, many) = (lower(&around, 1)?, lower(&around, MOST_ROWS)?);
        let most = 4 * many.output_width * many.output_rows.count(MOST_ROWS) as u64;
        let read = gpu.buffer("read", most, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        let step_group = model.pipelines.step_group(gpu, &step);
        Ok(Self { model, tokens, step, step_group, turns: tables, one, many, read, len: 0 })
    }

    /// Tokens remembered.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets what follows the first `len` tokens.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Tokens a step may have.
    pub fn rows_at_once(&self) -> usize {
        MOST_ROWS
    }

    /// Tokens in the vocabulary: columns of the output.
    pub fn vocabulary(&self) -> usize {
        self.one.output_width as usize
    }

    /// The plan for steps of one token.
    pub fn plan(&self) -> &Plan {
        &self.one
    }

    /// Reads `ids` and gives the graph's output, row by row. If it fails or is dropped, nothing was read.
    pub async fn step(&mut self, ids: &[u32]) -> Result<Vec<f32>, GpuError> {
        let (rows, context) = (ids.len(), self.model.context);
        if rows == 0 || rows > MOST_ROWS || self.len + rows > context {
            return Err(GpuError::StepSize { rows, cached: self.len, context });
        }
        let vocabulary = self.model.vocabulary;
        if let Some(&id) = ids.iter().find(|&&id| id >= vocabulary) {
            return Err(GpuError::UnknownToken { id, vocabulary });
        }
        let plan = if rows == 1 { &self.one } else { &self.many };
        let gpu = &self.model.gpu;
        gpu.queue.write_buffer(&self.tokens, 0, bytemuck::cast_slice(ids));
        gpu.queue.write_buffer(&self.step, 0, bytemuck::cast_slice(&[rows as u32, self.len as u32]));
        for turns in &self.turns {
            gpu.queue.write_buffer(&turns.buffer, 0, bytemuck::cast_slice(&turns.table(self.len, rows)));
        }
        let bytes = 4 * plan.output_width * plan.output_rows.count(rows) as u64;
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            plan.record(&mut pass, &self.step_group, rows);
        }
        encoder.copy_buffer_to_buffer(&plan.output, 0, &self.read, 0, bytes);
        gpu.queue.submit([encoder.finish()]);
        let logits = readback::floats(gpu, &self.read, bytes).await?;
        self.len += rows;
        Ok(logits)
    }
}

impl Turns {
    /// Cosine and sine of each pair for `rows` rows from `position` on. In double precision: at long positions f32 has
    /// no digits left for an angle's fraction.
    fn table(&self, position: usize, rows: usize) -> Vec<[f32; 2]> {
        let half = self.rope.head_width / 2;
        let turn = |row: usize, pair: u32| {
            if pair >= self.rope.pairs {
                return [1.0, 0.0];
            }
            let factor = self.factors.as_ref().map_or(1.0, |factors| f64::from(factors[pair as usize]));
            let exponent = -2.0 * f64::from(pair) / f64::from(self.rope.head_width);
            let angle = (position + row) as f64 * f64::from(self.rope.base).powf(exponent) / factor;
            [angle.cos() as f32, angle.sin() as f32]
        };
        (0..rows).flat_map(|row| (0..half).map(move |pair| turn(row, pair))).collect()
    }
}
