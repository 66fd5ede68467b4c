//! A model on the GPU: its weights, and the programs that steps run.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use rullama_gguf::Model;
use rullama_graph::{Graph, Op};

use crate::{
    Budget, CacheFormat, Fallback, Gpu, GpuError, GpuState, Residency,
    budget::{Needs, Supply},
    kernel::Pipelines,
    lower::{FEW_ROWS, Program, StepSize, Target, lower},
    report::PlanReport,
    self_test::{self, Variant},
    weights::{Conversion, Layout, Manifest, Resident},
};

/// The most rows of a step, while a prompt is read.
pub(crate) const MOST_ROWS: u32 = 512;

/// Steps of more than a few rows and up to so many have a plan of their own, with smaller tiles.
const SMALL_CHUNK: u32 = 64;

/// Where nobody says how much memory there is, one of so many experts has a page.
const EXPERTS_A_PAGE: u32 = 4;

/// How a model is loaded onto a GPU.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelOptions {
    /// Tokens that a conversation may have.
    pub context: u32,
    /// How keys and values are kept.
    pub cache: CacheFormat,
    /// Whether operations are fused. Without, each is a dispatch of its own: slow, and the proof of the other way.
    pub fused: bool,
    /// Bytes of GPU memory that the model and one conversation may take; without it, as many as there are.
    pub memory: Option<u64>,
    /// Where weights live; without it, the fastest way that fits.
    pub residency: Option<Residency>,
    /// The most tokens of a step. Fewer keep a slow GPU busy for less time at once, and take less memory.
    pub rows: u32,
}

impl Default for ModelOptions {
    fn default() -> Self {
        Self {
            context: 4096,
            cache: CacheFormat::F16,
            fused: true,
            memory: None,
            residency: None,
            rows: MOST_ROWS,
        }
    }
}

impl ModelOptions {
    /// Sets the size of conversations.
    #[must_use]
    pub fn context(mut self, tokens: u32) -> Self {
        self.context = tokens;
        self
    }

    /// Sets how keys and values are kept.
    #[must_use]
    pub fn cache(mut self, format: CacheFormat) -> Self {
        self.cache = format;
        self
    }

    /// Sets how much memory may be taken.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Sets where weights live.
    #[must_use]
    pub fn residency(mut self, residency: Residency) -> Self {
        self.residency = Some(residency);
        self
    }

    /// Sets the most tokens of a step: at least one, and no more than 512.
    #[must_use]
    pub fn rows(mut self, rows: u32) -> Self {
        self.rows = rows.clamp(1, MOST_ROWS);
        self
    }

    /// The most tokens of a step.
    pub(crate) fn most_rows(&self) -> u32 {
        self.rows.clamp(1, MOST_ROWS)
    }

    /// Makes every operation a dispatch of its own.
    #[must_use]
    pub fn unfused(mut self) -> Self {
        self.fused = false;
        self
    }
}

/// A graph with its weights on the GPU.
pub struct GpuModel {
    pub(crate) gpu: Gpu,
    /// Where the weights come from, for those that stay there.
    pub(crate) source: Rc<Model>,
    pub(crate) graph: Graph,
    pub(crate) manifest: Manifest,
    pub(crate) weights: Resident,
    pub(crate) pipelines: Rc<Pipelines>,
    pub(crate) options: ModelOptions,
    variant: Variant,
    budget: Budget,
    /// Rows of each cache.
    pub(crate) capacities: Vec<u32>,
    pub(crate) vocabulary: u32,
    /// Programs by the rows of their steps: conversations share them.
    programs: RefCell<HashMap<u32, Rc<Program>>>,
}

impl GpuModel {
    /// Uploads the weights that `graph` names, telling `progress` how many bytes of how many are done.
    ///
    /// Before the first byte of them is read, the GPU's kernels answer known cases, unless the GPU was opened without
    /// that, and what the model needs is compared with what there is.
    pub async fn load(
        gpu: Gpu,
        model: &Rc<Model>,
        graph: Graph,
        options: ModelOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, GpuError> {
        let trusted = self_test::trusted(&gpu).await?;
        let variant = Variant { fused: trusted.fused && options.fused, ..trusted };
        let pipelines = Rc::new(Pipelines::new(&gpu));
        Self::load_as(variant, pipelines, gpu, model, graph, options, progress).await
    }

    /// Loads with kernels of this variant, untested.
    pub(crate) async fn load_as(
        variant: Variant,
        pipelines: Rc<Pipelines>,
        gpu: Gpu,
        model: &Rc<Model>,
        graph: Graph,
        options: ModelOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, GpuError> {
        let asked = Asked { gpu: &gpu, model, graph: &graph, options: &options, variant };
        let (draft, weights) = asked.fitting(progress).await?;
        let Draft { manifest, programs, capacities, budget } = draft;
        let table = graph.nodes().iter().find_map(|node| match node.op {
            Op::Embed { table, .. } => Some(graph.weight(table).rows),
            _ => None,
        });
        let vocabulary = table.ok_or(GpuError::Unsupported { operation: "a graph without tokens" })?;
        let (source, programs) = (model.clone(), RefCell::new(programs));
        Ok(Self {
            gpu,
            source,
            graph,
            manifest,
            weights,
            pipelines,
            options,
            variant,
            budget,
            capacities,
            vocabulary,
            programs,
        })
    }

    /// The same model, loaded again onto a GPU that was lost and is there again.
    pub async fn reload(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Self, GpuError> {
        let gpu = self.gpu.reopen().await?;
        Self::load(gpu, &self.source, self.graph.clone(), self.options.clone(), progress).await
    }

    /// What a step of `rows` rows after `position` others would do on this GPU, with the kernels that a load would use: like
    /// a load, it tests them first. Reads no weights.
    pub async fn plan(
        gpu: &Gpu,
        model: &Model,
        graph: &Graph,
        options: &ModelOptions,
        rows: u32,
        position: u32,
    ) -> Result<PlanReport, GpuError> {
        let residency = options.residency.unwrap_or_default();
        let layout = layout(gpu, residency, default_pages(graph), options);
        let manifest = Manifest::read(model, graph, layout).await?;
        let trusted = self_test::trusted(gpu).await?;
        let variant = Variant { fused: trusted.fused && options.fused, ..trusted };
        let capacities = capacities(graph, options.context, options.most_rows());
        let target = target(gpu, graph, &manifest, options, &capacities, variant);
        Ok(PlanReport::new(
            &lower(target, plan_rows(rows, options.most_rows()))?,
            StepSize { rows, position },
        ))
    }

    /// The GPU it is on.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Tokens a step may have.
    pub fn rows_at_once(&self) -> usize {
        rows_at_once(&self.graph, &self.manifest, &self.options) as usize
    }

    /// The most frugal place that any of its weights live in.
    pub fn residency(&self) -> Residency {
        self.manifest.residency()
    }

    /// Bytes of weights on the GPU.
    pub fn weight_bytes(&self) -> u64 {
        self.manifest.bytes()
    }

    /// What it and one conversation take of the GPU's memory.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// What the GPU's features allow and its answers in the self-test forbid.
    pub fn fallbacks(&self) -> &[Fallback] {
        self.gpu.fallbacks()
    }

    /// Whether tokens can be chosen where the logits are.
    pub fn can_choose(&self) -> bool {
        !self.fallbacks().iter().any(|fallback| matches!(fallback, Fallback::ChoosingOnHost { .. }))
    }

    /// Tensors that are kept in another format than the file's.
    pub fn conversions(&self) -> Vec<Conversion> {
        self.manifest.conversions()
    }

    /// What a step of `rows` rows after `position` others does.
    pub fn report(&self, rows: u32, position: u32) -> Result<PlanReport, GpuError> {
        let size = StepSize { rows, position };
        Ok(PlanReport::new(&*self.program(plan_rows(rows, self.options.most_rows()))?, size))
    }

    /// The state of a new conversation.
    pub fn state(self: &Rc<Self>) -> Result<GpuState, GpuError> {
        GpuState::new(self.clone())
    }

    pub(crate) fn program(&self, rows: u32) -> Result<Rc<Program>, GpuError> {
        if let Some(program) = self.programs.borrow().get(&rows) {
            return Ok(program.clone());
        }
        let Self { gpu, graph, manifest, options, capacities, variant, .. } = self;
        let target = target(gpu, graph, manifest, options, capacities, *variant);
        let program = Rc::new(lower(target, rows)?);
        self.programs.borrow_mut().insert(rows, program.clone());
        Ok(program)
    }
}

/// What a model is to be loaded with.
#[derive(Clone, Copy)]
struct Asked<'a> {
    gpu: &'a Gpu,
    model: &'a Model,
    graph: &'a Graph,
    options: &'a ModelOptions,
    variant: Variant,
}

/// A model before its weights are read.
struct Draft {
    manifest: Manifest,
    /// One of each size that a conversation may come to have a plan for.
    programs: HashMap<u32, Rc<Program>>,
    capacities: Vec<u32>,
    budget: Budget,
}

impl Asked<'_> {
    /// Uploads the weights in the fastest way that fits, or the one that was asked for.
    async fn fitting(self, progress: &mut dyn FnMut(u64, u64)) -> Result<(Draft, Resident), GpuError> {
        let asked = self.options.residency;
        let ways: &[Residency] = asked.as_ref().map_or(&Residency::ALL, std::slice::from_ref);
        let mut refused = None;
        for &residency in ways {
            let draft = match self.draft(residency).await {
                // A way without anything to save is the one before it again.
                Ok(draft) if refused.is_some() && draft.manifest.residency() < residency => continue,
                Ok(draft) => draft,
                Err(error @ GpuError::OutOfBudget { .. }) => {
                    refused = Some(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let conversation = draft.budget.caches + draft.budget.scratch;
            match Resident::upload(self.gpu, self.model, &draft.manifest, conversation, progress).await {
                Err(error @ GpuError::OutOfMemory { .. }) => refused = Some(error),
                uploaded => return Ok((draft, uploaded?)),
            }
        }
        Err(refused.expect("there is a way, and it was refused"))
    }

    async fn draft(self, residency: Residency) -> Result<Draft, GpuError> {
        let pages = match self.options.memory {
            Some(memory) if residency == Residency::Paged => self.fitting_pages(memory).await?,
            _ => default_pages(self.graph),
        };
        self.draft_with(residency, pages).await
    }

    async fn draft_with(self, residency: Residency, pages: u32) -> Result<Draft, GpuError> {
        let Self { gpu, model, graph, options, variant } = self;
        let manifest = Manifest::read(model, graph, layout(gpu, residency, pages, options)).await?;
        let capacities = capacities(graph, options.context, options.most_rows());
        let target = target(gpu, graph, &manifest, options, &capacities, variant);
        let most = rows_at_once(graph, &manifest, options);
        let mut programs = HashMap::new();
        for rows in (1..=FEW_ROWS).chain([SMALL_CHUNK, MOST_ROWS]) {
            let rows = plan_rows(rows.min(most), options.most_rows());
            programs.insert(rows, Rc::new(lower(target, rows)?));
        }
        let all: Vec<_> = programs.values().cloned().collect();
        let supply = Supply { memory: options.memory, binding: gpu.largest_binding() };
        let budget = Needs::new(graph, &manifest, options, &all).check(options.context, supply)?;
        Ok(Draft { manifest, programs, capacities, budget })
    }

    /// As many pages as fit into the memory; at least what a step of one row needs.
    async fn fitting_pages(self, memory: u64) -> Result<u32, GpuError> {
        let (experts, used) = experts(self.graph);
        let (mut fits, mut does_not) = (used, experts);
        // More pages never take less, so the most that fit can be found by halves.
        while does_not > fits + 1 {
            let middle = fits + (does_not - fits) / 2;
            match self.draft_with(Residency::Paged, middle).await {
                Ok(draft) if draft.budget.total() <= memory => fits = middle,
                Ok(_) | Err(GpuError::OutOfBudget { .. }) => does_not = middle,
                Err(error) => return Err(error),
            }
        }
        Ok(fits)
    }
}

fn layout(gpu: &Gpu, residency: Residency, pages: u32, options: &ModelOptions) -> Layout {
    Layout { largest_shard: gpu.largest_shard(), residency, most_rows: options.most_rows(), pages }
}

/// Experts of a layer, and how many of them a row uses.
fn experts(graph: &Graph) -> (u32, u32) {
    let layers = graph.nodes().iter().filter_map(|node| match node.op {
        Op::Route { logits, used } => Some((graph.value(logits).shape.width, used)),
        _ => None,
    });
    layers.max().unwrap_or((0, 0))
}

fn default_pages(graph: &Graph) -> u32 {
    let (experts, used) = experts(graph);
    (experts / EXPERTS_A_PAGE).max(used)
}

/// The most rows of a step: where experts come and go, no more than there are pages for all that they may use.
fn rows_at_once(graph: &Graph, manifest: &Manifest, options: &ModelOptions) -> u32 {
    let (_, used) = experts(graph);
    let pages = manifest.pools.iter().map(|pool| pool.pages).min();
    let rows = options.most_rows();
    pages.map_or(rows, |pages| (pages / used).clamp(1, rows))
}

fn target<'a>(
    gpu: &Gpu,
    graph: &'a Graph,
    manifest: &'a Manifest,
    options: &ModelOptions,
    capacities: &'a [u32],
    variant: Variant,
) -> Target<'a> {
    let Variant { subgroup, matrices, fused } = variant;
    let workgroup_memory = gpu.profile().workgroup_memory;
    Target {
        graph,
        manifest,
        cache_format: options.cache,
        capacities,
        workgroup_memory,
        subgroup,
        matrices,
        fused,
    }
}

/// Rows of each cache: the whole context, or for layers that slide, what they see and the step that is being written.
pub(crate) fn capacities(graph: &Graph, context: u32, most_rows: u32) -> Vec<u32> {
    let ring = |window: u32| (window + most_rows).min(context);
    graph.caches().iter().map(|cache| cache.window.map_or(context, ring)).collect()
}

/// Which plan a step of so many rows takes, by the most rows it is made for.
pub(crate) fn plan_rows(rows: u32, most_rows: u32) -> u32 {
    match rows {
        1..=FEW_ROWS => rows,
        _ if rows <= SMALL_CHUNK => SMALL_CHUNK.min(most_rows),
        _ => most_rows,
    }
}
