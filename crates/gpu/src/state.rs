//! What a model on the GPU remembers of one conversation, and the steps that add to it.

mod choosing;

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::Range,
    rc::Rc,
};

use crate::{
    GpuError, GpuModel,
    health::Outcome,
    lower::Pause,
    options::plan_rows,
    params::Step,
    plan::{Plan, Surroundings},
    readback::{self, Readback},
    sample::SampleLoop,
    step_block::StepBlock,
    weights::RowTables,
};

/// What comes back of a choice: token and status. After a step without one, the first logits.
const CHOICE_BYTES: u64 = 16;

/// What a model remembers of one conversation.
pub struct GpuState {
    pub(crate) model: Rc<GpuModel>,
    pub(crate) tokens: wgpu::Buffer,
    pub(crate) step: StepBlock,
    /// Rows of tables that stay in the file.
    row_tables: Option<RowTables>,
    paging: Option<Paging>,
    caches: Vec<(wgpu::Buffer, wgpu::Buffer)>,
    pub(crate) plans: BTreeMap<u32, Plan>,
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
    /// A choice that the next step is to read, where the host has to see it first.
    unread: Option<u32>,
    /// Tokens read, those of steps under way included.
    pub(crate) len: u32,
    /// Whether there was memory for all of this, where that is not known yet.
    allocated: Vec<Outcome>,
    /// Whether there was not.
    incomplete: bool,
    /// How far the caches have ever been written: rings have forgotten what lies further back than they are long.
    pub(crate) written: Cell<u32>,
    /// Whether a step gave numbers that are not finite, so that the caches may hold some.
    damaged: bool,
}

/// What a stop on the way needs.
struct Paging {
    /// A routing with pages in place of experts.
    pages: wgpu::Buffer,
    /// Where routings come back.
    read: wgpu::Buffer,
}

impl GpuState {
    pub(crate) fn new(model: Rc<GpuModel>) -> Result<Self, GpuError> {
        let gpu = &model.gpu;
        let graph = &model.graph;
        let most_rows = model.options.most_rows();
        let mut allocated = Vec::new();
        let mut storage = |what: &str, bytes: u64| -> Result<wgpu::Buffer, GpuError> {
            let (buffer, outcome) = gpu.allocate(what, bytes, || gpu.storage(what, bytes));
            allocated.extend(outcome.now()?);
            buffer
        };
        let tokens = storage("tokens", 4 * u64::from(most_rows))?;
        let mut caches = Vec::new();
        for (info, &capacity) in graph.caches().iter().zip(&model.capacities) {
            let bytes = u64::from(capacity) * model.options.cache.row_bytes(info.kv_heads, info.head_width);
            let what = format!("the cache of layer {}", info.layer);
            caches.push((storage(&what, bytes)?, storage(&what, bytes)?));
        }
        let step = StepBlock::new(gpu, &model.pipelines, graph, &model.manifest, most_rows)?;
        let output = graph.value(graph.output()).shape;
        let most = 4 * u64::from(output.width) * output.rows.count(most_rows as usize) as u64;
        let result = storage("output", most)?;
        let (made, outcome) = gpu.allocate("logits to be read", most, || {
            let read = gpu.buffer("read", most, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
            Ok::<_, GpuError>((read, SampleLoop::new(gpu, &result, output.width, &tokens)?))
        });
        allocated.extend(outcome.now()?);
        let (read, sampler) = made?;
        let (made, outcome) = gpu.allocate("rows of tables", model.manifest.row_bytes(), || {
            RowTables::new(gpu, &model.manifest, most_rows)
        });
        allocated.extend(outcome.now()?);
        let row_tables = made?;
        let mut paging = None;
        if !model.manifest.pools.is_empty() {
            let bytes = model.manifest.routing_bytes(graph, most_rows);
            let (made, outcome) = gpu.allocate("pages", bytes, || {
                let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
                let read = gpu.buffer("routing", bytes, usage);
                Ok::<_, GpuError>(Paging { pages: gpu.storage("pages", bytes)?, read })
            });
            allocated.extend(outcome.now()?);
            paging = Some(made?);
        }
        let plans = BTreeMap::new();
        Ok(Self {
            model,
            tokens,
            step,
            row_tables,
            paging,
            caches,
            plans,
            output: result,
            read,
            sampler,
            choices: VecDeque::new(),
            spare: Vec::new(),
            wanted: 0,
            unread: None,
            len: 0,
            allocated,
            incomplete: false,
            written: Cell::new(0),
            damaged: false,
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
        (self.wanted, self.unread) = (0, None);
        let len = self.len.min(len as u32);
        let caches = self.model.graph.caches().iter().zip(&self.model.capacities);
        let forgotten = caches.filter_map(|(cache, &capacity)| Some((cache.window?, capacity))).any(
            // What a row at `len` sees begins a window before it; what is still there begins a ring before the end.
            |(window, capacity)| (len + 1).saturating_sub(window) + capacity < self.written.get(),
        );
        self.len = if forgotten { 0 } else { len };
        if self.len == 0 {
            self.written.set(0);
            if self.damaged {
                self.clear_caches();
            }
        }
    }

    /// Tokens a step may have.
    pub fn rows_at_once(&self) -> usize {
        self.model.rows_at_once()
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
    pub(crate) async fn prepare(&mut self, rows: u32) -> Result<(), GpuError> {
        while let Some(outcome) = self.allocated.pop() {
            let known = outcome.known().await;
            self.incomplete |= known.is_err();
            known?;
        }
        if self.incomplete {
            return Err(GpuError::OutOfMemory { what: "the conversation".to_owned(), bytes: None });
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
            row_tables: self.row_tables.as_ref(),
            pages: self.paging.as_ref().map(|paging| &paging.pages),
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

    /// Which plan a step of so many rows takes.
    pub(crate) fn plan_rows(&self, rows: u32) -> u32 {
        plan_rows(rows, self.model.options.most_rows())
    }

    /// Writes what varies between steps.
    pub(crate) fn write_step(&self, size: Step) {
        self.step.write(&self.model.gpu, size, self.plan_rows(size.rows));
    }

    /// Reads `ids` and gives the graph's output, row by row. If it fails or is dropped, nothing was read.
    pub async fn step(&mut self, ids: &[u32]) -> Result<Vec<f32>, GpuError> {
        let size = self.write_ids(ids).await?;
        let output = self.model.graph.value(self.model.graph.output()).shape;
        let bytes = 4 * u64::from(output.width) * output.rows.count(ids.len()) as u64;
        let submission = self.submit(size, false, (&self.output, &self.read, bytes)).await?;
        let logits = readback::floats(&self.model.gpu, &self.read, bytes, submission).await?;
        self.check_finite(&logits, self.len + size.rows)?;
        self.len += size.rows;
        Ok(logits)
    }

    /// Refuses logits that are not finite. Those after a row with an infinity or NaN are all NaN, so the first few tell.
    fn check_finite(&mut self, logits: &[f32], tokens: u32) -> Result<(), GpuError> {
        if logits.iter().all(|logit| logit.is_finite()) {
            Ok(())
        } else {
            Err(self.not_finite(tokens as usize))
        }
    }

    fn not_finite(&mut self, tokens: usize) -> GpuError {
        self.damaged = true;
        GpuError::NotFinite { value: "logits", tokens }
    }

    /// Fills the caches with zeros. At its first token a conversation reads a row of them that holds no token and weighs
    /// it with zero; NaN of an earlier conversation would survive that.
    fn clear_caches(&mut self) {
        let gpu = &self.model.gpu;
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        for (keys, values) in &self.caches {
            encoder.clear_buffer(keys, 0, None);
            encoder.clear_buffer(values, 0, None);
        }
        gpu.queue.submit([encoder.finish()]);
        self.damaged = false;
    }

    /// Checks a step's tokens and writes what the step reads.
    async fn write_ids(&mut self, ids: &[u32]) -> Result<Step, GpuError> {
        let context = self.model.options.context as usize;
        if ids.is_empty() || ids.len() > self.rows_at_once() || self.len() + ids.len() > context {
            return Err(GpuError::StepSize { rows: ids.len(), cached: self.len(), context });
        }
        let vocabulary = self.model.vocabulary;
        if let Some(&id) = ids.iter().find(|&&id| id >= vocabulary) {
            return Err(GpuError::UnknownToken { id, vocabulary });
        }
        let size = Step { rows: ids.len() as u32, position: self.len };
        self.prepare(self.plan_rows(size.rows)).await?;
        if let Some(tables) = &self.row_tables {
            let GpuModel { gpu, source, manifest, .. } = &*self.model;
            tables.fill(gpu, source, manifest, ids).await?;
        }
        self.model.gpu.queue.write_buffer(&self.tokens, 0, bytemuck::cast_slice(ids));
        self.write_step(size);
        Ok(size)
    }

    /// A step, after which a token is chosen if asked for; what was chosen last is on its way back.
    async fn choose(&mut self, size: Step, chooses: bool) -> Result<Readback, GpuError> {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let read = self.spare.pop().unwrap_or_else(|| self.model.gpu.buffer("choice", CHOICE_BYTES, usage));
        let from = if chooses { self.sampler.chosen() } else { &self.output };
        let copy = (from, &read, CHOICE_BYTES.min(from.size()));
        let submission = self.submit(size, chooses, copy).await?;
        Ok(Readback::start(read, CHOICE_BYTES, submission))
    }

    /// Records and submits a step, with a copy of something at its end. Waits only where experts have to be brought.
    async fn submit(
        &self,
        size: Step,
        chooses: bool,
        copy: BufferCopy<'_>,
    ) -> Result<wgpu::SubmissionIndex, GpuError> {
        self.written.set(self.written.get().max(size.position + size.rows));
        let plan = &self.plans[&self.plan_rows(size.rows)];
        let mut first = 0;
        for (pause, routing) in plan.pauses() {
            let paging = self.paging.as_ref().expect("a plan that stops has what it needs for that");
            let rows = pause.rows.count(size.rows as usize) as u64;
            let bytes = 4 * rows * u64::from(pause.width);
            let submission =
                self.submit_part(size, first..pause.before, false, (routing, &paging.read, bytes));
            let routing = readback::floats(&self.model.gpu, &paging.read, bytes, submission).await?;
            self.bring(pause, routing, &paging.pages).await?;
            first = pause.before;
        }
        Ok(self.submit_part(size, first..plan.len(), chooses, copy))
    }

    /// Records and submits some dispatches of a step.
    fn submit_part(
        &self,
        size: Step,
        dispatches: Range<usize>,
        chooses: bool,
        (from, to, bytes): BufferCopy<'_>,
    ) -> wgpu::SubmissionIndex {
        let gpu = &self.model.gpu;
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            let plan = &self.plans[&self.plan_rows(size.rows)];
            plan.record(&mut pass, &self.step.group, size, dispatches);
            if chooses {
                self.sampler.record(&mut pass);
            }
        }
        encoder.copy_buffer_to_buffer(from, 0, to, 0, bytes);
        gpu.queue.submit([encoder.finish()])
    }

    /// Brings the experts that a routing names, and writes the routing with their pages.
    async fn bring(&self, pause: &Pause, routing: Vec<f32>, pages: &wgpu::Buffer) -> Result<(), GpuError> {
        let GpuModel { gpu, source, manifest, weights, .. } = &*self.model;
        let pool = &manifest.pools[pause.pool];
        let mut routing = routing;
        let used = pause.width as usize / 2;
        let named = || routing.chunks(pause.width as usize).flat_map(|row| &row[..used]);
        let wanted: BTreeSet<u32> = named().map(|&expert| expert as u32).collect();
        if let Some(&expert) = wanted.iter().find(|&&expert| expert >= pool.experts) {
            let reason = format!("a row was routed to expert {expert} of {}", pool.experts);
            return Err(GpuError::Refused { reason });
        }
        let held = &weights.pages[pause.pool];
        held.bring(gpu, source, manifest, pool, &weights.shards, &wanted).await?;
        for row in routing.chunks_mut(pause.width as usize) {
            for expert in &mut row[..used] {
                *expert = held.page(*expert as u32).expect("it was brought") as f32;
            }
        }
        gpu.queue.write_buffer(pages, 0, bytemuck::cast_slice(&routing));
        Ok(())
    }
}

/// What is copied at the end of a submission: from where, to where, how many bytes.
type BufferCopy<'a> = (&'a wgpu::Buffer, &'a wgpu::Buffer, u64);

/// A browser frees buffers when it collects garbage, which it does not do for want of GPU memory. So what is large is given
/// back here; what is under way ends first.
impl Drop for GpuState {
    fn drop(&mut self) {
        for (keys, values) in &self.caches {
            keys.destroy();
            values.destroy();
        }
        let paging = self.paging.iter().flat_map(|paging| [&paging.pages, &paging.read]);
        paging.chain([&self.output, &self.read]).for_each(wgpu::Buffer::destroy);
    }
}
