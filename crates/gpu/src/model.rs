//! A model on the GPU: a graph with tokens, its weights, and its programs.

use std::{
    cell::{OnceCell, RefCell},
    collections::HashMap,
    rc::Rc,
};

use rullama_gguf::Model;
use rullama_graph::{Graph, Op};

use crate::{
    Budget, Fallback, Fit, Gpu, GpuError, GpuState, ModelOptions, Residency,
    fitting::{Fitted, LoadRequest, default_pages, lowering_target, manifest_options, rows_at_once},
    lower::{Program, StepShape, lower},
    options::{capacities, prompt_shape},
    report::PlanReport,
    rows::StepSize,
    run::SharedRun,
    self_test::{self, KernelSet},
    weights::{Conversion, GpuWeights, Manifest, Numbers, Resident},
};

/// A graph with tokens, with its weights on the GPU.
pub struct GpuModel {
    pub(crate) gpu: Gpu,
    /// The weights that graphs share. Also read while the model runs, for tables and experts that stay in the file.
    pub(crate) set: Rc<GpuWeights>,
    pub(crate) graph: Graph,
    pub(crate) manifest: Manifest,
    pub(crate) resident: Resident,
    pub(crate) options: ModelOptions,
    kernels: KernelSet,
    budget: Budget,
    /// Rows of each cache.
    pub(crate) capacities: Vec<u32>,
    pub(crate) vocabulary: u32,
    /// The programs so far, by the shape of their steps.
    programs: RefCell<HashMap<StepShape, Rc<Program>>>,
    /// What conversations share. Created with the first of them.
    run: OnceCell<Rc<SharedRun>>,
}

impl GpuModel {
    /// Uploads the weights of `graph`. Calls `progress` with bytes done and in total.
    ///
    /// Before weights are read, the self-test runs, unless the GPU was opened without it, and the memory that the model needs
    /// is compared with the memory there is.
    pub async fn load(
        weights: &Rc<GpuWeights>,
        graph: Graph,
        options: ModelOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, GpuError> {
        let trusted = self_test::trusted(weights.gpu()).await?;
        let kernels = KernelSet { fused: trusted.fused && options.fused, ..trusted };
        Self::load_as(kernels, weights, graph, options, progress).await
    }

    /// Loads with these kernels, without a self-test.
    pub(crate) async fn load_as(
        kernels: KernelSet,
        set: &Rc<GpuWeights>,
        graph: Graph,
        options: ModelOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, GpuError> {
        let table = graph.nodes().iter().find_map(|node| match node.op {
            Op::Embed { table, .. } => Some(graph.weight(table).rows),
            _ => None,
        });
        let vocabulary = table.ok_or(GpuError::Unsupported { operation: "a graph without tokens" })?;
        if !graph.inputs().is_empty() || !graph.domains().is_empty() {
            return Err(GpuError::Unsupported { operation: "inputs of a graph with tokens" });
        }
        let _loading = set.loading.lock().await;
        let (gpu, held) = (set.gpu().clone(), set.held());
        let request = LoadRequest {
            gpu: &gpu,
            model: set.source(),
            graph: &graph,
            options: &options,
            kernels,
            numbers: Numbers::Read,
            held: &held,
        };
        let (fitted, resident) = request.fitting(set, progress).await?;
        let Fitted { manifest, programs, capacities, budget } = fitted;
        let (set, programs) = (set.clone(), RefCell::new(programs));
        Ok(Self {
            gpu,
            set,
            graph,
            manifest,
            resident,
            options,
            kernels,
            budget,
            capacities,
            vocabulary,
            programs,
            run: OnceCell::new(),
        })
    }

    /// The same model, loaded from weights that were [reopened](GpuWeights::reopen).
    pub async fn reload(
        &self,
        weights: &Rc<GpuWeights>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, GpuError> {
        Self::load(weights, self.graph.clone(), self.options.clone(), progress).await
    }

    /// How a load with these options would hold the model, from its header alone; fails as the load would. A load makes the
    /// same choice, unless the GPU fails its self-test, which this does not run, or has less memory left than is needed.
    ///
    /// [`Fit::largest_context`] is at most `most_context`.
    pub async fn fit(
        gpu: &Gpu,
        model: &Model,
        graph: &Graph,
        options: &ModelOptions,
        most_context: u32,
    ) -> Result<Fit, GpuError> {
        let expected = self_test::expected(gpu)?;
        let kernels = KernelSet { fused: expected.fused && options.fused, ..expected };
        let request =
            LoadRequest { gpu, model, graph, options, kernels, numbers: Numbers::Assumed, held: &[] };
        request.fit(most_context).await
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
        let settings = manifest_options(gpu, residency, default_pages(graph), options);
        let manifest = Manifest::read(model, graph, settings, Numbers::Read, &[]).await?;
        let trusted = self_test::trusted(gpu).await?;
        let kernels = KernelSet { fused: trusted.fused && options.fused, ..trusted };
        let capacities = capacities(graph, options.context, options.most_rows());
        let target = lowering_target(gpu.profile(), graph, &manifest, options, &capacities, kernels);
        Ok(PlanReport::new(
            &lower(target, prompt_shape(rows, options.most_rows()))?,
            StepSize::of_one(rows, position),
        ))
    }

    /// The weights that other graphs may share.
    pub fn weights(&self) -> &Rc<GpuWeights> {
        &self.set
    }

    /// The GPU it is on.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// The most tokens of a step.
    pub fn rows_at_once(&self) -> usize {
        rows_at_once(&self.graph, &self.manifest, &self.options) as usize
    }

    /// The most frugal residency of any of its weights.
    pub fn residency(&self) -> Residency {
        self.manifest.residency()
    }

    /// Bytes of weights on the GPU.
    pub fn weight_bytes(&self) -> u64 {
        self.manifest.bytes()
    }

    /// The GPU memory that it and one conversation need.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Features of the GPU that are not used because they failed the self-test.
    pub fn fallbacks(&self) -> &[Fallback] {
        self.gpu.fallbacks()
    }

    /// Whether the GPU can sample tokens.
    pub fn can_choose(&self) -> bool {
        !self.fallbacks().iter().any(|fallback| matches!(fallback, Fallback::ChoosingOnHost { .. }))
    }

    /// Tensors whose format on the GPU is not that of the file.
    pub fn conversions(&self) -> Vec<Conversion> {
        self.manifest.conversions()
    }

    /// What a step of `rows` rows after `position` others does.
    pub fn report(&self, rows: u32, position: u32) -> Result<PlanReport, GpuError> {
        let size = StepSize::of_one(rows, position);
        Ok(PlanReport::new(&*self.program(prompt_shape(rows, self.options.most_rows()))?, size))
    }

    /// What conversations share. Created by the first call.
    pub(crate) fn run(&self) -> Result<Rc<SharedRun>, GpuError> {
        if let Some(run) = self.run.get() {
            return Ok(run.clone());
        }
        let run = Rc::new(SharedRun::new(self)?);
        Ok(self.run.get_or_init(|| run).clone())
    }

    /// A new conversation.
    pub fn state(self: &Rc<Self>) -> Result<GpuState, GpuError> {
        GpuState::new(self.clone())
    }

    pub(crate) fn program(&self, shape: StepShape) -> Result<Rc<Program>, GpuError> {
        if let Some(program) = self.programs.borrow().get(&shape) {
            return Ok(program.clone());
        }
        let Self { gpu, graph, manifest, options, capacities, kernels, .. } = self;
        let target = lowering_target(gpu.profile(), graph, manifest, options, capacities, *kernels);
        let program = Rc::new(lower(target, shape)?);
        self.programs.borrow_mut().insert(shape, program.clone());
        Ok(program)
    }
}
