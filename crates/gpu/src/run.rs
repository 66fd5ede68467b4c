//! What all conversations with a model share while it runs: the cache pool, the buffers of a step, the plans, and a chooser
//! for each slot.
//!
//! All of it is made once for a model. A conversation is a slot of the pool and a few numbers, so that opening one costs
//! nothing. Steps are submitted one after another: who has the [`turn`](SharedRun::turn) writes what a step reads and submits
//! the step. The GPU runs steps in the same order, so that the next one may be written while it is still busy.

use std::{
    cell::{RefCell, RefMut},
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::Range,
    rc::Rc,
    task::Waker,
};

use futures_util::lock::Mutex;
use rullama_graph::{Ahead, Attended, Graph, Op, Rows, SoftRows};

use crate::{
    GpuError, GpuModel,
    health::Outcome,
    lower::{Pause, StepShape},
    options::decode_shape,
    plan::{Plan, Surroundings},
    pool::CachePool,
    readback::{self, SharedReadback},
    rows::{MOST_SLOTS, RowTable, SpanLayers, StepSize},
    sample::Chooser,
    step_block::StepBlock,
    weights::RowTables,
};

/// A run, and who may change it.
pub(crate) struct SharedRun {
    /// Held while a step is written and submitted.
    pub(crate) turn: Mutex<()>,
    run: RefCell<Run>,
}

impl SharedRun {
    pub(crate) fn new(model: &GpuModel) -> Result<Self, GpuError> {
        Ok(Self { turn: Mutex::new(()), run: RefCell::new(Run::new(model)?) })
    }

    /// The run, for as long as nothing is awaited.
    pub(crate) fn borrow(&self) -> RefMut<'_, Run> {
        self.run.borrow_mut()
    }
}

/// What a conversation has on the GPU, and what is under way for it.
#[derive(Default)]
pub(crate) struct Conversation {
    /// Tokens read, those of steps under way included.
    pub(crate) len: u32,
    /// How far its caches have ever been written: rings have forgotten what lies further back than they are long.
    pub(crate) written: u32,
    /// Choices under way, the earliest first.
    pub(crate) choices: VecDeque<Choice>,
    /// Choices that may still be begun for this reply.
    pub(crate) wanted: usize,
    /// A choice that the next step is to read, where the host has to see it first.
    pub(crate) unread: Option<u32>,
    /// Whether its slot was given to another one since it was last set back.
    pub(crate) evicted: bool,
    /// Whether a prompt is being read, which nothing interrupts.
    pub(crate) pinned: bool,
    /// Whether others went on without it, because it did not take its tokens.
    pub(crate) lags: bool,
}

impl Conversation {
    /// Forgets what is under way: steps end in vain, and what they write lies behind what is remembered.
    pub(crate) fn end(&mut self) {
        self.choices.clear();
        (self.wanted, self.unread, self.lags) = (0, None, false);
    }
}

/// A token that a step chooses.
#[derive(Clone)]
pub(crate) struct Choice {
    pub(crate) step: Rc<SharedReadback>,
    /// Its first word there.
    pub(crate) at: usize,
}

/// What a pause needs.
#[derive(Clone)]
struct Paging {
    /// A routing with pages in place of experts.
    pages: wgpu::Buffer,
    /// Where routings come back.
    read: wgpu::Buffer,
}

/// What is copied at the end of a submission: bytes of one buffer to another.
pub(crate) struct BufferCopy {
    pub(crate) from: wgpu::Buffer,
    pub(crate) to: wgpu::Buffer,
    pub(crate) to_offset: u64,
    pub(crate) bytes: u64,
}

/// What follows the dispatches of a step: the slots that choose a token, and what is copied.
#[derive(Default)]
pub(crate) struct Ending {
    pub(crate) choosers: Vec<u32>,
    pub(crate) copies: Vec<BufferCopy>,
}

/// Everything that steps of a model read and write, besides the weights.
pub(crate) struct Run {
    pub(crate) tokens: wgpu::Buffer,
    pub(crate) soft_rows: wgpu::Buffer,
    pub(crate) step: StepBlock,
    /// Rows of tables that stay in the file.
    pub(crate) row_tables: Option<Rc<RowTables>>,
    paging: Option<Paging>,
    /// The graph's outputs, whichever plan computed them. Tokens are chosen from the first.
    pub(crate) outputs: Vec<wgpu::Buffer>,
    pub(crate) pool: CachePool,
    pub(crate) choosers: Vec<Chooser>,
    pub(crate) plans: BTreeMap<StepShape, Rc<Plan>>,
    pub(crate) conversations: BTreeMap<u64, Conversation>,
    /// Buffers that choices, and logits, came back in.
    pub(crate) spare: Vec<wgpu::Buffer>,
    /// Who waits until a prompt has been read.
    pub(crate) waiting: Vec<Waker>,
    /// Whether there was memory for all of this, where that is not known yet.
    allocated: Vec<Outcome>,
    /// Whether there was not.
    incomplete: bool,
    /// Whether the pool could not grow the last time.
    full: bool,
    opened: u64,
}

impl Run {
    fn new(model: &GpuModel) -> Result<Self, GpuError> {
        let GpuModel { gpu, graph, manifest, options, .. } = model;
        let most_rows = options.most_rows();
        let mut allocated = Vec::new();
        let mut storage = |what: &str, bytes: u64| -> Result<wgpu::Buffer, GpuError> {
            let (buffer, outcome) = gpu.allocate(what, bytes, || gpu.storage(what, bytes));
            allocated.extend(outcome.now()?);
            buffer
        };
        let tokens = storage("tokens", 4 * u64::from(MOST_SLOTS + most_rows))?;
        let soft_rows = storage("soft rows", 4 * u64::from(soft_width(graph)) * u64::from(most_rows))?;
        let outputs = graph.outputs().iter().map(|(name, output)| {
            let shape = graph.value(*output).shape;
            let rows = if shape.rows == Rows::Last { options.conversations } else { most_rows };
            storage(name, 4 * u64::from(shape.width) * u64::from(rows.max(options.conversations)))
        });
        let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        let pool = CachePool::new(gpu, graph, &model.capacities, options, &mut allocated)?;
        let step_rows = most_rows.max(decode_shape(options.conversations).rows);
        let step = StepBlock::new(gpu, &model.pipelines, graph, manifest, step_rows)?;
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
        let mut run = Self {
            tokens,
            soft_rows,
            step,
            row_tables,
            paging,
            outputs,
            pool,
            choosers: Vec::new(),
            plans: BTreeMap::new(),
            conversations: BTreeMap::new(),
            spare: Vec::new(),
            waiting: Vec::new(),
            allocated,
            incomplete: false,
            full: false,
            opened: 0,
        };
        run.make_choosers(model, 1)?;
        Ok(run)
    }

    /// Opens a conversation, which has no slot before it needs one.
    pub(crate) fn open(&mut self) -> u64 {
        self.opened += 1;
        self.conversations.insert(self.opened, Conversation::default());
        self.opened
    }

    /// A chooser for each slot that has none.
    fn make_choosers(&mut self, model: &GpuModel, slots: u32) -> Result<(), GpuError> {
        let vocabulary = model.graph.value(model.graph.output()).shape.width;
        while (self.choosers.len() as u32) < slots {
            let slot = self.choosers.len() as u32;
            let make = || Chooser::new(&model.gpu, slot, &self.outputs[0], vocabulary, &self.tokens);
            let (chooser, outcome) = model.gpu.allocate("the choice of tokens", 0, make);
            self.allocated.extend(outcome.now()?);
            self.choosers.push(chooser?);
        }
        Ok(())
    }

    pub(crate) fn conversation(&mut self, id: u64) -> &mut Conversation {
        self.conversations.get_mut(&id).expect("a conversation is known as long as it is open")
    }

    /// Whether the host has to see a token before a step can read it.
    pub(crate) fn host_reads(&self) -> bool {
        self.row_tables.is_some() || self.paging.is_some()
    }

    /// A buffer of at least so many bytes that can be mapped.
    pub(crate) fn read_buffer(&mut self, model: &GpuModel, bytes: u64) -> wgpu::Buffer {
        // Choices are small and many, logits large: one is not taken for the other.
        let fits = |buffer: &wgpu::Buffer| (bytes..=8 * bytes.max(64)).contains(&buffer.size());
        match self.spare.iter().position(fits) {
            Some(index) => self.spare.swap_remove(index),
            None => {
                let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
                model.gpu.buffer("read", bytes, usage)
            }
        }
    }

    /// Lets who waits for the end of a prompt try again.
    pub(crate) fn wake(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let paging = self.paging.iter().flat_map(|paging| [&paging.pages, &paging.read]);
        paging.chain(&self.outputs).chain([&self.soft_rows]).for_each(wgpu::Buffer::destroy);
    }
}

/// Columns of rows made by towers; of a graph that takes none, one.
pub(crate) fn soft_width(graph: &Graph) -> u32 {
    let widths = graph.nodes().iter().filter_map(|node| match node.op {
        Op::Embed { soft: SoftRows::Given, .. } => Some(node.shape.width),
        _ => None,
    });
    widths.max().unwrap_or(1)
}

/// The token that stands for a row made by a tower.
pub(crate) fn soft_token(model: &GpuModel) -> u32 {
    let tokens = model.graph.nodes().iter().filter_map(|node| match node.op {
        Op::Embed { soft: SoftRows::Token(id), .. } => Some(id),
        _ => None,
    });
    tokens.max().unwrap_or(0)
}

impl GpuModel {
    /// How much there is of what conversations share: pipelines, plans, read buffers that wait to be used again, slots. For
    /// tests of what opening a conversation costs.
    #[doc(hidden)]
    pub fn footprint(&self) -> [usize; 4] {
        let Ok(shared) = self.run() else { return [0; 4] };
        let run = shared.borrow();
        [self.pipelines.len(), run.plans.len(), run.spare.len(), run.pool.slots() as usize]
    }
}

/// The layers in which rows of a span see each other.
pub(crate) fn span_layers(model: &GpuModel) -> SpanLayers {
    let mut layers = SpanLayers::default();
    for node in model.graph.nodes() {
        if let Op::Attend { to: Attended::Cache { .. }, shape, .. } = node.op
            && shape.mask.ahead != Ahead::Nothing
        {
            match shape.mask.window {
                Some(_) => layers.sliding = true,
                None => layers.global = true,
            }
        }
    }
    layers
}

impl GpuModel {
    /// Makes the plan for steps of a shape, if it is not there. The turn is held.
    pub(crate) async fn prepare(&self, shared: &SharedRun, shape: StepShape) -> Result<Rc<Plan>, GpuError> {
        loop {
            let Some(outcome) = shared.borrow().allocated.pop() else { break };
            let known = outcome.known().await;
            shared.borrow().incomplete |= known.is_err();
            known?;
        }
        if shared.borrow().incomplete {
            return Err(GpuError::OutOfMemory { what: "the conversation".to_owned(), bytes: None });
        }
        self.gpu.check()?;
        if let Some(plan) = shared.borrow().plans.get(&shape) {
            return Ok(plan.clone());
        }
        let program = self.program(shape)?;
        let bytes = program.assign().1.iter().sum();
        let what = format!("the values of a step of {} rows", shape.rows);
        let (plan, outcome) = {
            let run = shared.borrow();
            let around = Surroundings {
                gpu: &self.gpu,
                weights: &self.weights,
                pipelines: &self.pipelines,
                caches: run.pool.buffers(),
                tokens: &run.tokens,
                soft_rows: &run.soft_rows,
                row_tables: run.row_tables.as_deref(),
                pages: run.paging.as_ref().map(|paging| &paging.pages),
                inputs: &[],
                outputs: &run.outputs,
                step: &run.step,
                domains: &[],
                rows: shape.rows,
            };
            self.gpu.allocate(what, bytes, || Plan::bind(&around, &program))
        };
        outcome.known().await?;
        let plan = Rc::new(plan?);
        // What was refused while it was made would be refused again in every step.
        self.gpu.check()?;
        shared.borrow().plans.insert(shape, plan.clone());
        Ok(plan)
    }

    /// The slot of a conversation: the one it has, a free one, one more, or that of the conversation that was used least
    /// recently. The turn is held. Without an answer, every slot is held by a conversation whose prompt is being read.
    pub(crate) async fn slot(&self, shared: &SharedRun, id: u64) -> Result<Option<u32>, GpuError> {
        loop {
            let grown = {
                let mut run = shared.borrow();
                if let Some(slot) = run.pool.slot_of(id) {
                    return Ok(Some(slot));
                }
                if let Some(slot) = run.pool.take_free(id) {
                    run.pool.repair(&self.gpu, slot);
                    return Ok(Some(slot));
                }
                let slots = (2 * run.pool.slots()).min(self.options.conversations);
                let fits = |memory: u64| {
                    let more = u64::from(slots - 1) * run.pool.slot_bytes();
                    self.budget().total().saturating_add(more) <= memory
                };
                let may_grow = slots > run.pool.slots()
                    && !run.full
                    && self.options.memory.is_none_or(fits)
                    && run.pool.can_bind(&self.gpu, slots);
                may_grow.then(|| (slots, run.pool.larger(&self.gpu, slots)))
            };
            let Some((slots, (buffers, outcomes))) = grown else {
                if !self.evict(shared) {
                    return Ok(None);
                }
                continue;
            };
            let mut known = Ok(());
            for outcome in outcomes {
                known = known.and(outcome.known().await);
            }
            let mut run = shared.borrow();
            match (buffers, known) {
                (Ok(buffers), Ok(())) => {
                    run.make_choosers(self, slots)?;
                    run.pool.adopt(&self.gpu, buffers, slots);
                    // Their bind groups name the buffers that were replaced.
                    run.plans.clear();
                }
                (Err(GpuError::OutOfMemory { .. }), _) | (_, Err(GpuError::OutOfMemory { .. })) => {
                    run.full = true;
                }
                (Err(error), _) | (_, Err(error)) => return Err(error),
            }
        }
    }

    /// Takes the slot of the conversation that was used least recently, unless a prompt of it is being read.
    fn evict(&self, shared: &SharedRun) -> bool {
        let mut run = shared.borrow();
        let Run { pool, conversations, .. } = &mut *run;
        let may = |owner: u64| conversations.get(&owner).is_none_or(|conversation| !conversation.pinned);
        let Some(owner) = pool.evict(may) else { return false };
        if let Some(conversation) = conversations.get_mut(&owner) {
            conversation.end();
            (conversation.len, conversation.written, conversation.evicted) = (0, 0, true);
        }
        true
    }

    /// Records and submits a step whose table was written. Waits only where experts have to be brought. The turn is held.
    pub(crate) async fn submit(
        &self,
        shared: &SharedRun,
        plan: &Plan,
        size: StepSize,
        ending: Ending,
    ) -> Result<wgpu::SubmissionIndex, GpuError> {
        let mut first = 0;
        for (pause, routing) in plan.pauses() {
            let paging =
                shared.borrow().paging.clone().expect("a plan that pauses has what it needs for that");
            let rows = if pause.rows == Rows::Last { size.last } else { size.rows };
            let bytes = 4 * u64::from(rows) * u64::from(pause.width);
            let copy = BufferCopy { from: routing.clone(), to: paging.read.clone(), to_offset: 0, bytes };
            let ending = Ending { choosers: Vec::new(), copies: vec![copy] };
            let submission = self.submit_part(shared, plan, size, first..pause.before, &ending);
            let routing = readback::floats(&self.gpu, &paging.read, bytes, submission).await?;
            self.bring(pause, routing, &paging.pages).await?;
            first = pause.before;
        }
        Ok(self.submit_part(shared, plan, size, first..plan.len(), &ending))
    }

    /// Records and submits some dispatches of a step.
    fn submit_part(
        &self,
        shared: &SharedRun,
        plan: &Plan,
        size: StepSize,
        dispatches: Range<usize>,
        ending: &Ending,
    ) -> wgpu::SubmissionIndex {
        let run = shared.borrow();
        let mut encoder = self.gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            plan.record(&mut pass, &run.step.group, size, dispatches);
            for &slot in &ending.choosers {
                run.choosers[slot as usize].record(&mut pass);
            }
        }
        for BufferCopy { from, to, to_offset, bytes } in &ending.copies {
            encoder.copy_buffer_to_buffer(from, 0, to, *to_offset, *bytes);
        }
        self.gpu.queue.submit([encoder.finish()])
    }

    /// Brings the experts that a routing names, and writes the routing with their pages.
    async fn bring(&self, pause: &Pause, routing: Vec<f32>, pages: &wgpu::Buffer) -> Result<(), GpuError> {
        let Self { gpu, set, manifest, weights, .. } = self;
        let pool = &manifest.pools[pause.pool];
        let mut routing = routing;
        let used = pause.width as usize / 2;
        let named = || routing.chunks(pause.width as usize).flat_map(|row| &row[..used]);
        let wanted: BTreeSet<u32> = named().map(|&expert| expert as u32).collect();
        if let Some(&expert) = wanted.iter().find(|&&expert| expert >= pool.experts) {
            let reason = format!("a row was routed to expert {expert} of {}", pool.experts);
            return Err(GpuError::Refused { reason });
        }
        let held = weights.pages(pool);
        held.bring(set, manifest, pool, &weights.tensors, &wanted).await?;
        for row in routing.chunks_mut(pause.width as usize) {
            for expert in &mut row[..used] {
                *expert = held.page(*expert as u32).expect("it was brought") as f32;
            }
        }
        gpu.queue.write_buffer(pages, 0, bytemuck::cast_slice(&routing));
        Ok(())
    }
}

/// Writes what a step of a table reads, for the plan of a shape.
pub(crate) fn write_table(model: &GpuModel, shared: &SharedRun, table: &RowTable, shape: StepShape) {
    shared.borrow().step.write(&model.gpu, table, shape.rows);
}
