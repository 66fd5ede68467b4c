//! A graph without conversations, which computes outputs from inputs: a tower, which turns an image or audio into rows for the
//! text model.
//!
//! Its weights may be released between runs, because they are needed only briefly. The next run loads them again.

use std::{cell::RefCell, rc::Rc};

use futures_util::lock::Mutex;
use rullama_graph::{Domain, Graph, InputInfo, Op, Rows};

use crate::{
    DeviceProfile, GpuError, GpuWeights, ModelOptions, PlanReport, Residency,
    fitting::lowering_target,
    lower::{LoweringTarget, Program, StepShape, lower},
    plan::{Plan, PlanBuffers},
    readback,
    rows::{RowTable, StepSize},
    self_test::{self, KernelSet},
    step_block::StepBlock,
    timing,
    weights::{Manifest, ManifestOptions, Numbers, Resident},
};

/// The most rows of an input: as many as the workgroups that WebGPU guarantees along an axis of a grid.
const MOST_ROWS: usize = 65_535;

/// How an encoder is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EncoderOptions {
    /// Whether operations are fused. Without, each is a dispatch of its own.
    pub fused: bool,
    /// Bytes of GPU memory that its weights and values may take; without it, as many as there are.
    pub memory: Option<u64>,
}

impl Default for EncoderOptions {
    fn default() -> Self {
        Self { fused: true, memory: None }
    }
}

impl EncoderOptions {
    /// Makes every operation a dispatch of its own.
    #[must_use]
    pub fn unfused(mut self) -> Self {
        self.fused = false;
        self
    }

    /// Sets how much memory may be taken.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    fn check(self, bytes: u64) -> Result<(), GpuError> {
        match self.memory {
            Some(allowed) if bytes > allowed => Err(GpuError::EncoderTooLarge { bytes, allowed }),
            _ => Ok(()),
        }
    }
}

/// A graph without tokens on the GPU.
pub struct GpuEncoder {
    set: Rc<GpuWeights>,
    graph: Graph,
    options: EncoderOptions,
    kernels: KernelSet,
    /// What [`release`](Self::release) frees.
    loaded: RefCell<Option<Rc<Loaded>>>,
    /// Held during a run: two would write the same buffers.
    turn: Mutex<()>,
}

/// The weights of an encoder, and the plan of its last run.
struct Loaded {
    manifest: Manifest,
    weights: Resident,
    last: RefCell<Option<Rc<BoundPlan>>>,
}

/// A plan for inputs of one size, with its buffers.
struct BoundPlan {
    /// Rows of each domain.
    domains: Vec<u32>,
    program: Program,
    plan: Plan,
    blocks: Vec<StepBlock>,
    inputs: Vec<wgpu::Buffer>,
    outputs: Vec<wgpu::Buffer>,
    /// Readback buffers of the outputs.
    read: Vec<wgpu::Buffer>,
}

/// Browsers free buffers late, so large ones are destroyed here.
impl Drop for BoundPlan {
    fn drop(&mut self) {
        let Self { inputs, outputs, read, .. } = self;
        inputs.iter().chain(&*outputs).chain(&*read).for_each(wgpu::Buffer::destroy);
    }
}

impl GpuEncoder {
    /// Uploads the weights of `graph` that no other graph holds. Calls `progress` with bytes done and in total.
    pub async fn load(
        weights: &Rc<GpuWeights>,
        graph: Graph,
        options: EncoderOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, GpuError> {
        if graph.nodes().iter().any(|node| !matches!(node.shape.rows, Rows::Of(_))) {
            return Err(GpuError::Unsupported { operation: "tokens in a graph without conversations" });
        }
        if graph.nodes().iter().any(|node| matches!(node.op, Op::Route { .. } | Op::ExpertLinear { .. })) {
            return Err(GpuError::Unsupported { operation: "experts in a graph without conversations" });
        }
        let trusted = self_test::trusted(weights.gpu()).await?;
        let kernels = KernelSet { fused: trusted.fused && options.fused, ..trusted };
        let (set, turn) = (weights.clone(), Mutex::new(()));
        let encoder = Self { set, graph, options, kernels, loaded: RefCell::default(), turn };
        encoder.upload(progress).await?;
        Ok(encoder)
    }

    /// The same encoder, loaded from weights that were [reopened](GpuWeights::reopen).
    pub async fn reload(&self, weights: &Rc<GpuWeights>) -> Result<Self, GpuError> {
        Self::load(weights, self.graph.clone(), self.options, &mut |_, _| {}).await
    }

    /// Bytes of weights that it holds on the GPU, including those shared with other graphs.
    pub fn weight_bytes(&self) -> u64 {
        self.loaded.borrow().as_ref().map_or(0, |loaded| loaded.manifest.bytes())
    }

    /// Frees its buffers, and its weights except those that other graphs hold too. The next run loads them again.
    pub fn release(&self) {
        self.loaded.take();
    }

    /// Whether its weights are on the GPU.
    pub fn is_loaded(&self) -> bool {
        self.loaded.borrow().is_some()
    }

    /// Computes the graph's outputs, in its order, from named inputs. The values of an input are its rows, one after another.
    ///
    /// Calls `progress` with the bytes of weights uploaded and their total, if they have to be uploaded.
    pub async fn run(
        &self,
        inputs: &[(&str, &[f32])],
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<Vec<f32>>, GpuError> {
        let _turn = self.turn.lock().await;
        let gpu = self.set.gpu();
        let bound = self.write(inputs, progress).await?;
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            let (group, all) = (&bound.blocks[0].group, 0..bound.plan.len());
            bound.plan.record(&mut pass, group, StepSize::of_one(0, 0), all);
        }
        for (from, to) in bound.outputs.iter().zip(&bound.read) {
            encoder.copy_buffer_to_buffer(from, 0, to, 0, to.size());
        }
        let submission = gpu.queue.submit([encoder.finish()]);
        let mut outputs = Vec::new();
        for (read, (output, _)) in bound.read.iter().zip(self.graph.outputs()) {
            let values = readback::floats(gpu, read, read.size(), submission.clone()).await?;
            if values.iter().any(|value| !value.is_finite()) {
                return Err(GpuError::NotFiniteOutput { output: output.clone() });
            }
            outputs.push(values);
        }
        Ok(outputs)
    }

    /// Does what [`run`](Self::run) does, with a clock around each dispatch, and gives the times. Clocks keep dispatches apart,
    /// so that the whole takes longer than a run; the shares are what counts.
    pub async fn profile(&self, inputs: &[(&str, &[f32])]) -> Result<PlanReport, GpuError> {
        timing::check(self.set.gpu())?;
        let _turn = self.turn.lock().await;
        let bound = self.write(inputs, &mut |_, _| {}).await?;
        let size = StepSize::of_one(0, 0);
        let report = PlanReport::new(&bound.program, size);
        timing::time(self.set.gpu(), &bound.plan, &bound.blocks[0].group, size, report).await
    }

    /// A plan for these inputs, which are written to its buffers.
    async fn write(
        &self,
        inputs: &[(&str, &[f32])],
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Rc<BoundPlan>, GpuError> {
        let given = self.given(inputs)?;
        let domains = self.domains(&given)?;
        let loaded = self.upload(progress).await?;
        let bound = self.prepare(&loaded, domains).await?;
        for (buffer, values) in bound.inputs.iter().zip(given) {
            self.set.gpu().queue.write_buffer(buffer, 0, bytemuck::cast_slice(values));
        }
        Ok(bound)
    }

    /// The weights, uploaded if necessary.
    async fn upload(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Rc<Loaded>, GpuError> {
        if let Some(loaded) = &*self.loaded.borrow() {
            return Ok(loaded.clone());
        }
        let set = &self.set;
        let _loading = set.loading.lock().await;
        let largest_shard = set.gpu().largest_shard();
        let settings = ManifestOptions { largest_shard, residency: Residency::Gpu, most_rows: 0, pages: 0 };
        let held = set.held();
        let manifest = Manifest::read(set.source(), &self.graph, settings, Numbers::Read, &held).await?;
        self.options.check(manifest.bytes())?;
        let weights = Resident::upload(set, &manifest, 0, progress).await?;
        let loaded = Rc::new(Loaded { manifest, weights, last: RefCell::default() });
        *self.loaded.borrow_mut() = Some(loaded.clone());
        Ok(loaded)
    }

    /// The values of each input, in the graph's order.
    fn given<'v>(&self, inputs: &[(&str, &'v [f32])]) -> Result<Vec<&'v [f32]>, GpuError> {
        let find = |info: &InputInfo| {
            let found = inputs.iter().find(|(name, _)| *name == info.name);
            let missing = || GpuError::MissingInput { input: info.name.clone() };
            let &(_, values) = found.ok_or_else(missing)?;
            let is_whole = !values.is_empty() && values.len().is_multiple_of(info.shape.width as usize);
            if is_whole { Ok(values) } else { Err(wrong_input(info, values)) }
        };
        self.graph.inputs().iter().map(find).collect()
    }

    /// The rows of each domain. Inputs of one domain must have the same number of rows.
    fn domains(&self, given: &[&[f32]]) -> Result<Vec<u32>, GpuError> {
        let inputs = || self.graph.inputs().iter().zip(given);
        let rows = |(info, values): (&InputInfo, &&[f32])| values.len() / info.shape.width as usize;
        let first =
            |domain: Domain| inputs().find(|(info, _)| info.shape.rows == Rows::Of(domain)).map_or(0, rows);
        let counts = self.graph.row_counts(0, 0, first);
        if let Some((info, values)) = inputs().find(|&input| rows(input) != counts.of(input.0.shape.rows)) {
            return Err(wrong_input(info, values));
        }
        if let Some(input) = inputs().find(|&input| rows(input) > MOST_ROWS) {
            let (input, rows) = (input.0.name.clone(), rows(input));
            return Err(GpuError::TooManyRows { input, rows, most: MOST_ROWS });
        }
        Ok(counts.domains.iter().map(|&rows| rows as u32).collect())
    }

    /// The plan for this many rows: that of the last run if it had as many, otherwise a new one.
    async fn prepare(&self, loaded: &Loaded, domains: Vec<u32>) -> Result<Rc<BoundPlan>, GpuError> {
        if let Some(bound) = loaded.last.borrow().as_ref().filter(|last| last.domains == domains) {
            return Ok(bound.clone());
        }
        loaded.last.take();
        let (profile, kernels) = (self.set.gpu().profile(), self.kernels);
        let program = lower_encoder(profile, &self.graph, &loaded.manifest, kernels, &domains)?;
        let given = program.inputs.iter().chain(&program.outputs).map(|scratch| program.bytes(scratch));
        let bytes = program.assign().1.into_iter().chain(given).sum();
        self.options.check(loaded.manifest.bytes() + bytes)?;
        let gpu = self.set.gpu();
        let make = || self.bind(loaded, program, domains);
        let (bound, outcome) = gpu.allocate("the values of an encoder", bytes, make);
        outcome.known().await?;
        let bound = Rc::new(bound?);
        gpu.check()?;
        *loaded.last.borrow_mut() = Some(bound.clone());
        Ok(bound)
    }

    /// Binds a program to buffers of its own.
    fn bind(&self, loaded: &Loaded, program: Program, domains: Vec<u32>) -> Result<BoundPlan, GpuError> {
        let (graph, Loaded { manifest, weights, .. }) = (&self.graph, loaded);
        let gpu = self.set.gpu();
        let pipelines = gpu.pipelines();
        let mut blocks = Vec::new();
        for &rows in &domains {
            let block = StepBlock::new(gpu, pipelines, graph, manifest, rows)?;
            block.write(gpu, &RowTable::prompt(0, 0, rows), rows);
            blocks.push(block);
        }
        let bytes = |scratch| program.bytes(scratch);
        let storage = |what: &'static str| move |scratch| gpu.storage(what, bytes(scratch));
        let inputs = program.inputs.iter().map(storage("input")).collect::<Result<Vec<_>, _>>()?;
        let outputs = program.outputs.iter().map(storage("output")).collect::<Result<Vec<_>, _>>()?;
        let shapes = graph.outputs().iter().map(|(_, output)| graph.value(*output).shape);
        let read = shapes.map(|shape| {
            let Rows::Of(domain) = shape.rows else { unreachable!("checked when it was loaded") };
            let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
            gpu.buffer("read", 4 * u64::from(shape.width) * u64::from(domains[domain.index()]), usage)
        });
        let read = read.collect();
        let around = PlanBuffers {
            gpu,
            weights,
            conversations: None,
            inputs: &inputs,
            outputs: &outputs,
            step: &blocks[0],
            domains: &blocks,
            rows: 0,
        };
        let plan = Plan::bind(&around, &program)?;
        Ok(BoundPlan { domains, program, plan, blocks, inputs, outputs, read })
    }
}

/// Lowers a graph without tokens for this many rows of each domain.
pub(crate) fn lower_encoder(
    profile: &DeviceProfile,
    graph: &Graph,
    manifest: &Manifest,
    kernels: KernelSet,
    domains: &[u32],
) -> Result<Program, GpuError> {
    let options = ModelOptions::default();
    let target = lowering_target(profile, graph, manifest, &options, &[], kernels);
    lower(LoweringTarget { domains, ..target }, StepShape::of_domains(domains))
}

fn wrong_input(info: &InputInfo, values: &[f32]) -> GpuError {
    let (input, width) = (info.name.clone(), info.shape.width as usize);
    GpuError::WrongInput { input, values: values.len(), width }
}
