//! A model on the GPU, and what it remembers of one conversation.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, HashMap, VecDeque},
    rc::Rc,
};

use rullama_gguf::Model;
use rullama_graph::{Graph, Op};

use crate::{
    Budget, CacheFormat, Fallback, Gpu, GpuError,
    budget::{Needs, Supply},
    health::Outcome,
    kernel::Pipelines,
    lower::{FEW_ROWS, Program, StepSize, Target, lower},
    plan::{Plan, Surroundings},
    readback::{self, Readback},
    report::PlanReport,
    sample::{self, SampleLoop, Sampling},
    self_test::{self, Variant},
    step_block::StepBlock,
    weights::{Conversion, Manifest, Resident},
};

/// The most rows of a step, while a prompt is read.
pub(crate) const MOST_ROWS: u32 = 512;

/// Steps that are under way at once while tokens are generated: enough that the GPU never waits for the host.
const AHEAD: usize = 4;

/// What comes back of a choice: token and status.
const CHOICE_BYTES: u64 = 16;

/// Steps of more than a few rows and up to so many have a plan of their own, with smaller tiles.
const SMALL_CHUNK: u32 = 64;

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
}

impl Default for ModelOptions {
    fn default() -> Self {
        Self { context: 4096, cache: CacheFormat::F16, fused: true, memory: None }
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

    /// Makes every operation a dispatch of its own.
    #[must_use]
    pub fn unfused(mut self) -> Self {
        self.fused = false;
        self
    }
}

/// A graph with its weights on the GPU.
pub struct GpuModel {
    gpu: Gpu,
    graph: Graph,
    manifest: Manifest,
    weights: Resident,
    pipelines: Rc<Pipelines>,
    options: ModelOptions,
    variant: Variant,
    budget: Budget,
    /// Rows of each cache.
    capacities: Vec<u32>,
    vocabulary: u32,
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
        model: &Model,
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
        model: &Model,
        graph: Graph,
        options: ModelOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, GpuError> {
        let manifest = Manifest::read(model, &graph, gpu.largest_shard()).await?;
        let table = graph.nodes().iter().find_map(|node| match node.op {
            Op::Embed { table, .. } => Some(graph.weight(table).rows),
            _ => None,
        });
        let vocabulary = table.ok_or(GpuError::Unsupported { operation: "a graph without tokens" })?;
        let capacities = capacities(&graph, options.context);
        let target = target(&gpu, &graph, &manifest, &options, &capacities, variant);
        let mut programs = HashMap::new();
        for rows in [1, FEW_ROWS, SMALL_CHUNK, MOST_ROWS] {
            programs.insert(rows, Rc::new(lower(target, rows)?));
        }
        let all: Vec<_> = programs.values().cloned().collect();
        let supply = Supply { memory: options.memory, binding: gpu.largest_binding() };
        let needs = Needs::new(&graph, &manifest, options.cache, &all);
        let budget = needs.check(options.context, supply)?;
        let weights = Resident::upload(&gpu, model, &manifest, progress).await?;
        let programs = RefCell::new(programs);
        Ok(Self {
            gpu,
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
    pub async fn reload(&self, model: &Model, progress: &mut dyn FnMut(u64, u64)) -> Result<Self, GpuError> {
        let gpu = self.gpu.reopen().await?;
        Self::load(gpu, model, self.graph.clone(), self.options.clone(), progress).await
    }

    /// What a step of `rows` rows after `position` others would do on this GPU. Reads no weights.
    pub async fn plan(
        gpu: &Gpu,
        model: &Model,
        graph: &Graph,
        options: &ModelOptions,
        rows: u32,
        position: u32,
    ) -> Result<PlanReport, GpuError> {
        let manifest = Manifest::read(model, graph, gpu.largest_shard()).await?;
        let trusted = gpu.variant();
        let variant = Variant { fused: trusted.fused && options.fused, ..trusted };
        let capacities = capacities(graph, options.context);
        let target = target(gpu, graph, &manifest, options, &capacities, variant);
        Ok(PlanReport::new(&lower(target, plan_rows(rows))?, StepSize { rows, position }))
    }

    /// The GPU it is on.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Tokens a step may have.
    pub fn rows_at_once(&self) -> usize {
        MOST_ROWS as usize
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
        self.gpu.verdict().get().map_or(&[], |verdict| &verdict.fallbacks)
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
        Ok(PlanReport::new(&*self.program(plan_rows(rows))?, size))
    }

    /// The state of a new conversation.
    pub fn state(self: &Rc<Self>) -> Result<GpuState, GpuError> {
        GpuState::new(self.clone())
    }

    fn program(&self, rows: u32) -> Result<Rc<Program>, GpuError> {
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

fn target<'a>(
    gpu: &Gpu,
    graph: &'a Graph,
    manifest: &'a Manifest,
    options: &ModelOptions,
    capacities: &'a [u32],
    variant: Variant,
) -> Target<'a> {
    let Variant { subgroup, fused } = variant;
    let workgroup_memory = gpu.profile().workgroup_memory;
    Target { graph, manifest, cache_format: options.cache, capacities, workgroup_memory, subgroup, fused }
}

/// Rows of each cache: the whole context, or for layers that slide, what they see and the step that is being written.
pub(crate) fn capacities(graph: &Graph, context: u32) -> Vec<u32> {
    let ring = |window: u32| (window + MOST_ROWS).min(context);
    graph.caches().iter().map(|cache| cache.window.map_or(context, ring)).collect()
}

/// Which plan a step of so many rows takes, by the most rows it is made for.
fn plan_rows(rows: u32) -> u32 {
    match rows {
        1..=FEW_ROWS => rows,
        _ if rows <= SMALL_CHUNK => SMALL_CHUNK,
        _ => MOST_ROWS,
    }
}

/// What a model remembers of one conversation.
pub struct GpuState {
    model: Rc<GpuModel>,
    tokens: wgpu::Buffer,
    step: StepBlock,
    caches: Vec<(wgpu::Buffer, wgpu::Buffer)>,
    plans: BTreeMap<u32, Plan>,
    /// The graph's output, whichever plan computed it.
    output: wgpu::Buffer,
    read: wgpu::Buffer,
    sampler: SampleLoop,
    /// Choices that are under way, the earliest first.
    choices: VecDeque<Readback>,
    /// Buffers that choices came back in.
    spare: Vec<wgpu::Buffer>,
    /// Choices that may still be begun for this reply.
    wanted: usize,
    /// Tokens read, those of steps under way included.
    len: u32,
    /// Whether there was memory for all of this, where that is not known yet.
    allocated: Vec<Outcome>,
    /// How far the caches have ever been written: rings have forgotten what lies further back than they are long.
    written: Cell<u32>,
}

impl GpuState {
    fn new(model: Rc<GpuModel>) -> Result<Self, GpuError> {
        let gpu = &model.gpu;
        let graph = &model.graph;
        let mut allocated = Vec::new();
        let mut storage = |what: &str, bytes: u64| -> Result<wgpu::Buffer, GpuError> {
            let (buffer, outcome) = gpu.allocate(what, bytes, || gpu.storage(what, bytes));
            allocated.extend(outcome.now()?);
            buffer
        };
        let tokens = storage("tokens", 4 * u64::from(MOST_ROWS))?;
        let mut caches = Vec::new();
        for (info, &capacity) in graph.caches().iter().zip(&model.capacities) {
            let bytes = u64::from(capacity) * model.options.cache.row_bytes(info.kv_heads, info.head_width);
            let what = format!("the cache of layer {}", info.layer);
            caches.push((storage(&what, bytes)?, storage(&what, bytes)?));
        }
        let step = StepBlock::new(gpu, &model.pipelines, graph, &model.manifest, MOST_ROWS)?;
        let output = graph.value(graph.output()).shape;
        let most = 4 * u64::from(output.width) * output.rows.count(MOST_ROWS as usize) as u64;
        let result = storage("output", most)?;
        let (made, outcome) = gpu.allocate("logits to be read", most, || {
            let read = gpu.buffer("read", most, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
            Ok::<_, GpuError>((read, SampleLoop::new(gpu, &result, output.width, &tokens)?))
        });
        allocated.extend(outcome.now()?);
        let (read, sampler) = made?;
        let plans = BTreeMap::new();
        Ok(Self {
            model,
            tokens,
            step,
            caches,
            plans,
            output: result,
            read,
            sampler,
            choices: VecDeque::new(),
            spare: Vec::new(),
            wanted: 0,
            len: 0,
            allocated,
            written: Cell::new(0),
        })
    }

    /// Tokens remembered.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets what follows the first `len` tokens; everything, if layers that slide have already forgotten what they
    /// would see then.
    pub fn truncate(&mut self, len: usize) {
        // Steps under way end in vain: what they write lies behind what is remembered.
        self.choices.clear();
        self.wanted = 0;
        let len = self.len.min(len as u32);
        let caches = self.model.graph.caches().iter().zip(&self.model.capacities);
        let forgotten = caches.filter_map(|(cache, &capacity)| Some((cache.window?, capacity))).any(
            // What a row at `len` sees begins a window before it; what is still there begins a ring before the end.
            |(window, capacity)| (len + 1).saturating_sub(window) + capacity < self.written.get(),
        );
        self.len = if forgotten { 0 } else { len };
        if self.len == 0 {
            self.written.set(0);
        }
    }

    /// Tokens a step may have.
    pub fn rows_at_once(&self) -> usize {
        MOST_ROWS as usize
    }

    /// Tokens that a conversation may have.
    pub fn context(&self) -> usize {
        self.model.options.context as usize
    }

    /// Tokens in the vocabulary: columns of the output.
    pub fn vocabulary(&self) -> usize {
        self.model.graph.value(self.model.graph.output()).shape.width as usize
    }

    /// Makes the plan for steps of so many rows, if it is not there.
    async fn prepare(&mut self, rows: u32) -> Result<(), GpuError> {
        while let Some(outcome) = self.allocated.pop() {
            outcome.known().await?;
        }
        let model = &self.model;
        model.gpu.check()?;
        if self.plans.contains_key(&rows) {
            return Ok(());
        }
        let around = Surroundings {
            gpu: &model.gpu,
            weights: &model.weights,
            pipelines: &model.pipelines,
            caches: &self.caches,
            tokens: &self.tokens,
            output: &self.output,
            step: &self.step,
            rows,
        };
        let program = model.program(rows)?;
        let bytes = program.assign().1.iter().sum();
        let what = format!("the values of a step of {rows} rows");
        let (plan, outcome) = model.gpu.allocate(what, bytes, || Plan::bind(&around, &program));
        outcome.known().await?;
        self.plans.insert(rows, plan?);
        // What was refused while it was made would be refused again in every step.
        model.gpu.check().inspect_err(|_| {
            self.plans.remove(&rows);
        })
    }

    /// Writes what varies between steps.
    fn write_step(&self, size: StepSize) {
        self.step.write(&self.model.gpu, size, plan_rows(size.rows));
    }

    /// Reads `ids` and gives the graph's output, row by row. If it fails or is dropped, nothing was read.
    pub async fn step(&mut self, ids: &[u32]) -> Result<Vec<f32>, GpuError> {
        let size = self.write_ids(ids).await?;
        let output = self.model.graph.value(self.model.graph.output()).shape;
        let bytes = 4 * u64::from(output.width) * output.rows.count(ids.len()) as u64;
        let submission = self.submit(size, false, Some((&self.output, &self.read, bytes)));
        let logits = readback::floats(&self.model.gpu, &self.read, bytes, submission).await?;
        self.len += size.rows;
        Ok(logits)
    }

    /// Reads `ids` and chooses a token after them, and one after another, up to `most`, while steps are under way
    /// already for those that [`next_token`](Self::next_token) has not asked for.
    ///
    /// `history` is what was read before, with `ids` at its end: penalties look back on it.
    pub async fn begin(
        &mut self,
        ids: &[u32],
        sampling: &Sampling,
        history: &[u32],
        most: usize,
    ) -> Result<(), GpuError> {
        let before = self.len;
        let result = self.read_and_choose(ids, sampling, history, most).await;
        if result.is_err() {
            self.truncate(before as usize);
        }
        result
    }

    async fn read_and_choose(
        &mut self,
        ids: &[u32],
        sampling: &Sampling,
        history: &[u32],
        most: usize,
    ) -> Result<(), GpuError> {
        let GpuModel { gpu, pipelines, .. } = &*self.model;
        let bytes = sample::most_bytes(self.model.vocabulary, self.model.options.context);
        let begin = || self.sampler.begin(gpu, pipelines, sampling, history);
        let (begun, outcome) = gpu.allocate("the choice of tokens", bytes, begin);
        outcome.known().await?;
        begun?;
        let rest = ids.len().saturating_sub(1) / MOST_ROWS as usize * MOST_ROWS as usize;
        let (first, last) = ids.split_at(rest);
        for ids in first.chunks(MOST_ROWS as usize) {
            let size = self.write_ids(ids).await?;
            let choice = self.choose(size, false);
            self.len += size.rows;
            // One chunk after another: a reply that is dropped should not leave the GPU busy for long.
            let (_, buffer) = choice.words(&self.model.gpu).await?;
            self.spare.push(buffer);
        }
        let size = self.write_ids(last).await?;
        let choice = self.choose(size, true);
        self.choices.push_back(choice);
        self.len += size.rows;
        self.wanted = most.saturating_sub(1);
        self.run_ahead().await
    }

    /// The next token, which is read already or will be by a step under way.
    pub async fn next_token(&mut self) -> Result<u32, GpuError> {
        self.run_ahead().await?;
        let cached = self.len() - self.choices.len();
        let choice = self.choices.pop_front();
        let choice = choice.ok_or(GpuError::Unsupported { operation: "a token after the last" })?;
        let (words, buffer) = choice.words(&self.model.gpu).await?;
        self.spare.push(buffer);
        match words[..] {
            [token, 0, ..] => Ok(token),
            [_, 1, ..] => Err(GpuError::NotANumber { cached }),
            _ => Err(GpuError::NothingLeft { vocabulary: self.model.vocabulary }),
        }
    }

    /// Begins steps for tokens that nobody has seen yet, each of which reads what the one before it chose.
    async fn run_ahead(&mut self) -> Result<(), GpuError> {
        while self.choices.len() < AHEAD && self.wanted > 0 && self.len < self.model.options.context {
            self.prepare(1).await?;
            let size = StepSize { rows: 1, position: self.len };
            self.write_step(size);
            let choice = self.choose(size, true);
            self.choices.push_back(choice);
            self.len += 1;
            self.wanted -= 1;
        }
        Ok(())
    }

    /// Checks a step's tokens and writes what the step reads.
    async fn write_ids(&mut self, ids: &[u32]) -> Result<StepSize, GpuError> {
        let context = self.model.options.context as usize;
        if ids.is_empty() || ids.len() > MOST_ROWS as usize || self.len() + ids.len() > context {
            return Err(GpuError::StepSize { rows: ids.len(), cached: self.len(), context });
        }
        let vocabulary = self.model.vocabulary;
        if let Some(&id) = ids.iter().find(|&&id| id >= vocabulary) {
            return Err(GpuError::UnknownToken { id, vocabulary });
        }
        let size = StepSize { rows: ids.len() as u32, position: self.len };
        self.prepare(plan_rows(size.rows)).await?;
        self.model.gpu.queue.write_buffer(&self.tokens, 0, bytemuck::cast_slice(ids));
        self.write_step(size);
        Ok(size)
    }

    /// A step, after which a token is chosen if asked for; what was chosen last is on its way back.
    fn choose(&mut self, size: StepSize, chooses: bool) -> Readback {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let read = self.spare.pop().unwrap_or_else(|| self.model.gpu.buffer("choice", CHOICE_BYTES, usage));
        let submission = self.submit(size, chooses, Some((self.sampler.chosen(), &read, CHOICE_BYTES)));
        Readback::start(read, CHOICE_BYTES, submission)
    }

    /// Records and submits a step, with a copy of something at its end.
    fn submit(
        &self,
        size: StepSize,
        chooses: bool,
        copy: Option<(&wgpu::Buffer, &wgpu::Buffer, u64)>,
    ) -> wgpu::SubmissionIndex {
        let gpu = &self.model.gpu;
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            self.plans[&plan_rows(size.rows)].record(&mut pass, &self.step.group, size);
            if chooses {
                self.sampler.record(&mut pass);
            }
        }
        if let Some((from, to, bytes)) = copy {
            encoder.copy_buffer_to_buffer(from, 0, to, 0, bytes);
        }
        let submission = gpu.queue.submit([encoder.finish()]);
        self.written.set(self.written.get().max(size.position + size.rows));
        submission
    }
}

impl GpuState {
    /// Does what [`step`](Self::step) does, with a clock around each dispatch, and remembers nothing.
    ///
    /// Clocks keep dispatches apart, so that the whole takes longer than a step; the shares are what counts.
    pub async fn profile(&mut self, rows: u32) -> Result<PlanReport, GpuError> {
        const AT_ONCE: usize = 1024;
        if !self.model.gpu.profile().timestamps {
            return Err(GpuError::Unsupported { operation: "timing single kernels" });
        }
        self.prepare(plan_rows(rows)).await?;
        let plan = &self.plans[&plan_rows(rows)];
        let gpu = &self.model.gpu;
        let size = StepSize { rows, position: self.len };
        let mut report = self.model.report(rows, self.len)?;
        let ids = vec![0u32; rows as usize];
        gpu.queue.write_buffer(&self.tokens, 0, bytemuck::cast_slice(&ids));
        self.write_step(size);
        self.written.set(self.written.get().max(self.len + rows));
        let times = gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
            label: Some("times"),
            ty: wgpu::QueryType::Timestamp,
            count: 2 * AT_ONCE as u32,
        });
        let bytes = 16 * AT_ONCE as u64;
        let resolved =
            gpu.buffer("times", bytes, wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC);
        let read = gpu.buffer("times", bytes, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        let tick = f64::from(gpu.queue.get_timestamp_period()) * 1e-9;
        for first in (0..plan.len()).step_by(AT_ONCE) {
            let count = AT_ONCE.min(plan.len() - first);
            let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            plan.record_timed(&mut encoder, &self.step.group, size, &times, first, count);
            encoder.resolve_query_set(&times, 0..2 * count as u32, &resolved, 0);
            encoder.copy_buffer_to_buffer(&resolved, 0, &read, 0, 16 * count as u64);
            let submission = gpu.queue.submit([encoder.finish()]);
            let words = readback::floats(gpu, &read, 16 * count as u64, submission).await?;
            let ticks: &[u64] = &bytemuck::cast_slice::<f32, u32>(&words)
                .chunks(2)
                .map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32)
                .collect::<Vec<_>>();
            for (dispatch, pair) in report.dispatches[first..first + count].iter_mut().zip(ticks.chunks(2)) {
                dispatch.seconds = Some(pair[1].saturating_sub(pair[0]) as f64 * tick);
            }
        }
        Ok(report)
    }
}

/// A browser frees buffers when it collects garbage, which it does not do for want of GPU memory. So what is large is given
/// back here; what is under way ends first.
impl Drop for GpuState {
    fn drop(&mut self) {
        for (keys, values) in &self.caches {
            keys.destroy();
            values.destroy();
        }
        self.output.destroy();
        self.read.destroy();
    }
}
