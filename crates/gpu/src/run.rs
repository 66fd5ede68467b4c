//! What all conversations with a model share while it runs: the cache pool, the buffers of a step, the plans, and a chooser
//! for each slot.
//!
//! All of it is made once for a model. A conversation is a slot of the pool and a few numbers, so that opening one costs
//! nothing. Steps are submitted one after another: the holder of the [`turn`](SharedRun::turn) writes and submits a step. The
//! GPU runs steps in the same order, so the next one may be written while it is still busy.

mod slots;
mod submit;

use std::{
    cell::{RefCell, RefMut},
    collections::{BTreeMap, VecDeque},
    rc::Rc,
    task::Waker,
};

use futures_util::lock::Mutex;
use rullama_graph::{Op, SoftRows};

pub(crate) use submit::write_table;

use crate::{
    GpuError, GpuModel, health::Outcome, lower::StepShape, plan::Plan, pool::CachePool,
    readback::SharedReadback, rows::AheadRules, sample::Chooser, step_buffers::StepBuffers,
    tuning::READBACK_RATIO,
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

/// The state of one conversation, including its steps in flight.
#[derive(Default)]
pub(crate) struct Conversation {
    /// Tokens read, those of steps under way included.
    pub(crate) len: u32,
    /// How far its caches have ever been written: rings have forgotten what lies further back than they are long.
    pub(crate) written: u32,
    /// Sampled tokens in flight, oldest first.
    pub(crate) choices: VecDeque<Choice>,
    /// Choices that may still be begun for this reply.
    pub(crate) wanted: usize,
    /// A sampled token that the host has to submit.
    pub(crate) unread: Option<u32>,
    /// Whether its slot was given to another one since it was last set back.
    pub(crate) evicted: bool,
    /// Whether a prompt is being read, which nothing interrupts.
    pub(crate) pinned: bool,
    /// Set when other conversations stopped waiting for this one.
    pub(crate) lags: bool,
}

impl Conversation {
    /// Discards steps in flight. What they write lies beyond `len`.
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
    pub(crate) buffers: StepBuffers,
    pub(crate) pool: CachePool,
    pub(crate) choosers: Vec<Chooser>,
    pub(crate) plans: BTreeMap<StepShape, Rc<Plan>>,
    /// What rows see of later rows in the graph's layers.
    pub(crate) ahead: AheadRules,
    pub(crate) conversations: BTreeMap<u64, Conversation>,
    /// Buffers that choices, and logits, came back in.
    pub(crate) spare: Vec<wgpu::Buffer>,
    /// Tasks that wait for a free slot.
    pub(crate) waiting: Vec<Waker>,
    /// Allocations whose outcome is not known yet.
    allocated: Vec<Outcome>,
    /// Set when one of them failed.
    incomplete: bool,
    /// Whether the pool could not grow the last time.
    full: bool,
    opened: u64,
}

impl Run {
    fn new(model: &GpuModel) -> Result<Self, GpuError> {
        let GpuModel { gpu, graph, capacities, options, .. } = model;
        let mut allocated = Vec::new();
        let buffers = StepBuffers::new(model, &mut allocated)?;
        let pool = CachePool::new(gpu, graph, capacities, options, &mut allocated)?;
        let mut run = Self {
            buffers,
            pool,
            choosers: Vec::new(),
            plans: BTreeMap::new(),
            ahead: AheadRules::of(graph)?,
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
            let StepBuffers { outputs, tokens, .. } = &self.buffers;
            let make = || Chooser::new(&model.gpu, slot, &outputs[0], vocabulary, tokens);
            let (chooser, outcome) = model.gpu.allocate("the choice of tokens", 0, make);
            self.allocated.extend(outcome.now()?);
            self.choosers.push(chooser?);
        }
        Ok(())
    }

    pub(crate) fn conversation(&mut self, id: u64) -> &mut Conversation {
        self.conversations.get_mut(&id).expect("a conversation is known as long as it is open")
    }

    /// A buffer of at least so many bytes that can be mapped.
    pub(crate) fn read_buffer(&mut self, model: &GpuModel, bytes: u64) -> wgpu::Buffer {
        // Choices are small and many, logits large: one is not taken for the other.
        let fits = |buffer: &wgpu::Buffer| (bytes..=READBACK_RATIO * bytes.max(64)).contains(&buffer.size());
        match self.spare.iter().position(fits) {
            Some(index) => self.spare.swap_remove(index),
            None => {
                let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
                model.gpu.buffer("read", bytes, usage)
            }
        }
    }

    /// Wakes the tasks that wait for a free slot.
    pub(crate) fn wake(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }
}

/// The token that stands for a row made by a tower.
pub(crate) fn soft_token(model: &GpuModel) -> u32 {
    let tokens = model.graph.nodes().iter().filter_map(|node| match node.op {
        Op::Embed { soft: SoftRows::Token(id), .. } => Some(id),
        _ => None,
    });
    tokens.max().unwrap_or(0)
}

/// How much there is of what conversations share, for tests of what a conversation costs.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footprint {
    /// Compiled pipelines of the GPU.
    pub pipelines: usize,
    /// Plans, each with the bind groups of its dispatches.
    pub plans: usize,
    /// The most rows, each of another conversation, of a plan that was made.
    pub decoded_together: u32,
    /// Readback buffers that wait to be used again.
    pub spare_buffers: usize,
    /// Slots of the cache pool.
    pub slots: u32,
    /// Open conversations.
    pub conversations: usize,
}

impl GpuModel {
    /// What conversations share now.
    #[doc(hidden)]
    pub fn footprint(&self) -> Result<Footprint, GpuError> {
        let shared = self.run()?;
        let run = shared.borrow();
        let decoding = run.plans.keys().filter(|shape| shape.decodes).map(|shape| shape.rows);
        Ok(Footprint {
            pipelines: self.gpu.pipelines().len(),
            plans: run.plans.len(),
            decoded_together: decoding.max().unwrap_or(0),
            spare_buffers: run.spare.len(),
            slots: run.pool.slots(),
            conversations: run.conversations.len(),
        })
    }
}
