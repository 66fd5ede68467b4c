//! The fastest way to hold a model on a GPU that fits, found before any weights are read.

use std::{collections::HashMap, rc::Rc};

use rullama_gguf::Model;
use rullama_graph::{Graph, Op};

use crate::{
    Budget, DeviceProfile, Gpu, GpuError, ModelOptions, Residency,
    budget::{Needs, Supply},
    lower::{FEW_ROWS, Program, Target, lower},
    options::{MOST_ROWS, SMALL_CHUNK, capacities, plan_rows},
    self_test::Variant,
    weights::{Conversion, Layout, Manifest, Numbers, Resident},
};

/// Without a memory limit, one expert in this many gets a page.
const EXPERTS_A_PAGE: u32 = 4;

/// What to load, and how.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) gpu: &'a Gpu,
    pub(crate) model: &'a Model,
    pub(crate) graph: &'a Graph,
    pub(crate) options: &'a ModelOptions,
    pub(crate) variant: Variant,
    pub(crate) numbers: Numbers,
}

/// A model before its weights are read.
pub(crate) struct Draft {
    pub(crate) manifest: Manifest,
    /// One program for each step size that a conversation may need a plan for.
    pub(crate) programs: HashMap<u32, Rc<Program>>,
    pub(crate) capacities: Vec<u32>,
    pub(crate) budget: Budget,
}

/// How a model would be held on a GPU, known without reading its weights. See [`crate::GpuModel::fit`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fit {
    /// Where the weights would live.
    pub residency: Residency,
    /// Bytes of GPU memory that the model and one conversation would take.
    pub budget: Budget,
    /// The largest context that fits with this residency, at most the one that was asked about.
    pub largest_context: u32,
    /// Tensors that would be kept in another format than the file's.
    pub conversions: Vec<Conversion>,
}

/// Tries residencies from the fastest to the most frugal, or only the one that was asked for.
struct Ways<'a> {
    asked: Asked<'a>,
    rest: std::slice::Iter<'a, Residency>,
    /// Why the last one was refused.
    refused: Option<GpuError>,
}

impl Ways<'_> {
    /// The next draft that fits; an error when none is left.
    async fn next(&mut self) -> Result<Draft, GpuError> {
        for &residency in self.rest.by_ref() {
            match self.asked.draft(residency).await {
                // A residency that saves nothing here is the previous one again.
                Ok(draft) if self.refused.is_some() && draft.manifest.residency() < residency => {}
                Err(error @ GpuError::OutOfBudget { .. }) => self.refused = Some(error),
                found => return found,
            }
        }
        Err(self.refused.take().expect("each residency that was tried left its reason"))
    }
}

impl<'a> Asked<'a> {
    fn ways(self) -> Ways<'a> {
        let asked = self.options.residency.as_ref();
        let ways: &[Residency] = asked.map_or(&Residency::ALL, std::slice::from_ref);
        Ways { asked: self, rest: ways.iter(), refused: None }
    }

    /// Uploads the weights with the fastest residency that fits, or the one that was asked for.
    pub(crate) async fn fitting(
        self,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(Draft, Resident), GpuError> {
        let mut ways = self.ways();
        loop {
            let draft = ways.next().await?;
            let conversation = draft.budget.conversation();
            match Resident::upload(self.gpu, self.model, &draft.manifest, conversation, progress).await {
                Err(error @ GpuError::OutOfMemory { .. }) => ways.refused = Some(error),
                uploaded => return Ok((draft, uploaded?)),
            }
        }
    }

    /// The residency that [`fitting`](Self::fitting) would try first, and what it needs.
    pub(crate) async fn fit(self, most_context: u32) -> Result<Fit, GpuError> {
        let draft = self.ways().next().await?;
        let (residency, budget) = (draft.manifest.residency(), draft.budget);
        let conversions = draft.manifest.conversions();
        // Under a memory limit, pages take what the context leaves, so the largest context has the fewest pages.
        let frugal = match (residency, self.options.memory) {
            (Residency::Paged, Some(_)) => self.draft_with(residency, experts(self.graph).1).await?,
            _ => draft,
        };
        let programs: Vec<_> = frugal.programs.into_values().collect();
        let needs = Needs::new(self.graph, &frugal.manifest, self.options, &programs);
        // The budget's own context is known to fit.
        let largest_context = needs.largest_context(most_context.max(budget.context), self.supply());
        let largest_context = largest_context.map_or(budget.context, |context| context.max(budget.context));
        Ok(Fit { residency, budget, largest_context, conversions })
    }

    fn supply(self) -> Supply {
        Supply { memory: self.options.memory, binding: self.gpu.largest_binding() }
    }

    async fn draft(self, residency: Residency) -> Result<Draft, GpuError> {
        let pages = match self.options.memory {
            Some(memory) if residency == Residency::Paged => self.fitting_pages(memory).await?,
            _ => default_pages(self.graph),
        };
        self.draft_with(residency, pages).await
    }

    async fn draft_with(self, residency: Residency, pages: u32) -> Result<Draft, GpuError> {
        let Self { gpu, model, graph, options, variant, numbers } = self;
        let manifest = Manifest::read(model, graph, layout(gpu, residency, pages, options), numbers).await?;
        let capacities = capacities(graph, options.context, options.most_rows());
        let target = target(gpu.profile(), graph, &manifest, options, &capacities, variant);
        let most = rows_at_once(graph, &manifest, options);
        let mut programs = HashMap::new();
        for rows in (1..=FEW_ROWS).chain([SMALL_CHUNK, MOST_ROWS]) {
            let rows = plan_rows(rows.min(most), options.most_rows());
            programs.insert(rows, Rc::new(lower(target, rows)?));
        }
        let all: Vec<_> = programs.values().cloned().collect();
        let budget = Needs::new(graph, &manifest, options, &all).check(options.context, self.supply())?;
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

pub(crate) fn layout(gpu: &Gpu, residency: Residency, pages: u32, options: &ModelOptions) -> Layout {
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

pub(crate) fn default_pages(graph: &Graph) -> u32 {
    let (experts, used) = experts(graph);
    (experts / EXPERTS_A_PAGE).max(used)
}

/// The most rows of a step: where experts come and go, no more than there are pages for all that they may use.
pub(crate) fn rows_at_once(graph: &Graph, manifest: &Manifest, options: &ModelOptions) -> u32 {
    let (_, used) = experts(graph);
    let pages = manifest.pools.iter().map(|pool| pool.pages).min();
    let rows = options.most_rows();
    pages.map_or(rows, |pages| (pages / used).clamp(1, rows))
}

pub(crate) fn target<'a>(
    profile: &DeviceProfile,
    graph: &'a Graph,
    manifest: &'a Manifest,
    options: &ModelOptions,
    capacities: &'a [u32],
    variant: Variant,
) -> Target<'a> {
    let Variant { subgroup, matrices, fused } = variant;
    let workgroup_memory = profile.workgroup_memory;
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
