//! Finds the fastest residency of a model that fits into memory, before any weight is read.

use std::{collections::HashMap, rc::Rc};

use rullama_gguf::Model;
use rullama_graph::{Graph, Op};

use crate::{
    Budget, DeviceProfile, Gpu, GpuError, ModelOptions, Residency,
    budget::{Needs, Supply},
    lower::{LoweringTarget, Program, StepShape, lower},
    options::{capacities, prompt_shape},
    self_test::KernelSet,
    tuning::{EXPERTS_PER_PAGE, FEW_ROWS, SMALL_CHUNK},
    weights::{Conversion, GpuWeights, Manifest, ManifestOptions, Numbers, Packed, Resident},
};

/// A model to load, and the options to load it with.
#[derive(Clone, Copy)]
pub(crate) struct LoadRequest<'a> {
    pub(crate) gpu: &'a Gpu,
    pub(crate) model: &'a Model,
    pub(crate) graph: &'a Graph,
    pub(crate) options: &'a ModelOptions,
    pub(crate) kernels: KernelSet,
    pub(crate) numbers: Numbers,
    /// The tensors that other graphs hold.
    pub(crate) held: &'a [Packed],
}

/// A model that fits into memory, before its weights are read.
pub(crate) struct Fitted {
    pub(crate) manifest: Manifest,
    /// The program of each step size that a conversation may need.
    pub(crate) programs: HashMap<StepShape, Rc<Program>>,
    pub(crate) capacities: Vec<u32>,
    pub(crate) budget: Budget,
}

/// How a model would be held on a GPU, known without reading its weights. See [`crate::GpuModel::fit`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fit {
    /// Where the weights would live.
    pub residency: Residency,
    /// Bytes of GPU memory that the model and one conversation would need.
    pub budget: Budget,
    /// The largest context that fits with this residency, up to the given limit.
    pub largest_context: u32,
    /// Tensors whose format on the GPU would not be that of the file.
    pub conversions: Vec<Conversion>,
}

/// Tries residencies from the fastest to the most frugal, or only the one in the options.
struct Candidates<'a> {
    request: LoadRequest<'a>,
    rest: std::slice::Iter<'a, Residency>,
    /// Why the previous one was refused.
    refused: Option<GpuError>,
}

impl Candidates<'_> {
    /// The next residency that fits; an error when none is left.
    async fn next(&mut self) -> Result<Fitted, GpuError> {
        for &residency in self.rest.by_ref() {
            match self.request.fit_residency(residency).await {
                // If a residency saves nothing for this model, it is the same as the previous one.
                Ok(fitted) if self.refused.is_some() && fitted.manifest.residency() < residency => {}
                Err(error @ GpuError::OutOfBudget { .. }) => self.refused = Some(error),
                found => return found,
            }
        }
        Err(self.refused.take().expect("every residency was refused with a reason"))
    }
}

impl<'a> LoadRequest<'a> {
    fn candidates(self) -> Candidates<'a> {
        let asked = self.options.residency.as_ref();
        let residencies: &[Residency] = asked.map_or(&Residency::ALL, std::slice::from_ref);
        Candidates { request: self, rest: residencies.iter(), refused: None }
    }

    /// Uploads the weights with the fastest residency that fits, or the one in the options.
    pub(crate) async fn fitting(
        self,
        set: &GpuWeights,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(Fitted, Resident), GpuError> {
        let mut candidates = self.candidates();
        loop {
            let fitted = candidates.next().await?;
            let conversation = fitted.budget.conversation();
            match Resident::upload(set, &fitted.manifest, conversation, progress).await {
                Err(error @ GpuError::OutOfMemory { .. }) => candidates.refused = Some(error),
                uploaded => return Ok((fitted, uploaded?)),
            }
        }
    }

    /// The residency that [`fitting`](Self::fitting) would try first, and what it needs.
    pub(crate) async fn fit(self, most_context: u32) -> Result<Fit, GpuError> {
        let fitted = self.candidates().next().await?;
        let (residency, budget) = (fitted.manifest.residency(), fitted.budget);
        let conversions = fitted.manifest.conversions();
        // Under a memory limit, pages take what the context leaves, so the largest context has the fewest pages.
        let frugal = match (residency, self.options.memory) {
            (Residency::Paged, Some(_)) => self.fit_with(residency, experts(self.graph).1).await?,
            _ => fitted,
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

    async fn fit_residency(self, residency: Residency) -> Result<Fitted, GpuError> {
        let pages = match self.options.memory {
            Some(memory) if residency == Residency::Paged => self.fitting_pages(memory).await?,
            _ => default_pages(self.graph),
        };
        self.fit_with(residency, pages).await
    }

    async fn fit_with(self, residency: Residency, pages: u32) -> Result<Fitted, GpuError> {
        let Self { gpu, model, graph, options, kernels, numbers, held } = self;
        let settings = manifest_options(gpu, residency, pages, options);
        let manifest = Manifest::read(model, graph, settings, numbers, held).await?;
        let capacities = capacities(graph, options.context, options.most_rows());
        let target = lowering_target(gpu.profile(), graph, &manifest, options, &capacities, kernels);
        let most = rows_at_once(graph, &manifest, options);
        let mut programs = HashMap::new();
        for rows in (1..=FEW_ROWS).chain([SMALL_CHUNK, options.most_rows()]) {
            let shape = prompt_shape(rows.min(most), options.most_rows());
            programs.insert(shape, Rc::new(lower(target, shape)?));
        }
        let all: Vec<_> = programs.values().cloned().collect();
        let budget = Needs::new(graph, &manifest, options, &all).check(options.context, self.supply())?;
        Ok(Fitted { manifest, programs, capacities, budget })
    }

    /// The most pages that fit into the memory, but at least those that a step of one row needs.
    async fn fitting_pages(self, memory: u64) -> Result<u32, GpuError> {
        let (experts, used) = experts(self.graph);
        let (mut fits, mut does_not) = (used, experts);
        // More pages never need less memory, so a binary search finds the maximum.
        while does_not > fits + 1 {
            let middle = fits + (does_not - fits) / 2;
            match self.fit_with(Residency::Paged, middle).await {
                Ok(fitted) if fitted.budget.total() <= memory => fits = middle,
                Ok(_) | Err(GpuError::OutOfBudget { .. }) => does_not = middle,
                Err(error) => return Err(error),
            }
        }
        Ok(fits)
    }
}

/// The options of a manifest for a model with conversations.
pub(crate) fn manifest_options(
    gpu: &Gpu,
    residency: Residency,
    pages: u32,
    options: &ModelOptions,
) -> ManifestOptions {
    ManifestOptions { largest_shard: gpu.largest_shard(), residency, most_rows: options.most_rows(), pages }
}

/// The number of experts in a layer, and how many of them a row uses.
fn experts(graph: &Graph) -> (u32, u32) {
    let layers = graph.nodes().iter().filter_map(|node| match node.op {
        Op::Route { logits, used } => Some((graph.value(logits).shape.width, used)),
        _ => None,
    });
    layers.max().unwrap_or((0, 0))
}

/// Pages of each pool without a memory limit.
pub(crate) fn default_pages(graph: &Graph) -> u32 {
    let (experts, used) = experts(graph);
    (experts / EXPERTS_PER_PAGE).max(used)
}

/// The most rows of a step. With paged experts, no more than have a page for every expert that they may use.
pub(crate) fn rows_at_once(graph: &Graph, manifest: &Manifest, options: &ModelOptions) -> u32 {
    let (_, used) = experts(graph);
    let pages = manifest.pools.iter().map(|pool| pool.pages).min();
    let rows = options.most_rows();
    pages.map_or(rows, |pages| (pages / used).clamp(1, rows))
}

/// What lowering needs to know about a model and a device.
pub(crate) fn lowering_target<'a>(
    profile: &DeviceProfile,
    graph: &'a Graph,
    manifest: &'a Manifest,
    options: &ModelOptions,
    capacities: &'a [u32],
    kernels: KernelSet,
) -> LoweringTarget<'a> {
    let KernelSet { subgroup, matrices, fused } = kernels;
    let workgroup_memory = profile.workgroup_memory;
    LoweringTarget {
        graph,
        manifest,
        cache_format: options.cache,
        capacities,
        domains: &[],
        workgroup_memory,
        subgroup,
        matrices,
        fused,
    }
}
