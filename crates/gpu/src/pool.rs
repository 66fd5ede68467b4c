//! The cache pool: keys and values of all conversations.
//!
//! Every cache is one buffer with `slots × capacity` rows, and a conversation is a slot of all of them, so that bind groups
//! name the pool and stay as they are while conversations come and go. The pool begins with one slot and grows while there
//! is memory; then the conversation that was used least recently makes room, and is read again when it goes on.

use rullama_graph::{CacheInfo, Graph};

use crate::{CacheLayout as _, Gpu, GpuError, ModelOptions, health::Outcome};

/// Keys and values of each cache of the graph.
pub(crate) type CacheBuffers = Vec<(wgpu::Buffer, wgpu::Buffer)>;

/// Keys and values of all conversations.
pub(crate) struct CachePool {
    buffers: CacheBuffers,
    /// Bytes that a slot has of each of them.
    slot_bytes: Vec<u64>,
    slots: Vec<Slot>,
    clock: u64,
}

/// One conversation's place.
#[derive(Debug, Clone, Default)]
struct Slot {
    /// The conversation that has it.
    owner: Option<u64>,
    /// When it was last used.
    used: u64,
    /// Whether its rows may hold numbers that are not finite.
    damaged: bool,
}

impl CachePool {
    /// A pool for the caches of a graph, with one slot.
    pub(crate) fn new(
        gpu: &Gpu,
        graph: &Graph,
        capacities: &[u32],
        options: &ModelOptions,
        allocated: &mut Vec<Outcome>,
    ) -> Result<Self, GpuError> {
        let bytes = |(info, &capacity): (&CacheInfo, &u32)| {
            u64::from(capacity) * options.cache.row_bytes(info.kv_heads, info.head_width)
        };
        let slot_bytes: Vec<u64> = graph.caches().iter().zip(capacities).map(bytes).collect();
        let buffers = allocate(gpu, &slot_bytes, 1, allocated)?;
        Ok(Self { buffers, slot_bytes, slots: vec![Slot::default()], clock: 0 })
    }

    /// Keys and values of each cache.
    pub(crate) fn buffers(&self) -> &[(wgpu::Buffer, wgpu::Buffer)] {
        &self.buffers
    }

    /// How many conversations it has room for now.
    pub(crate) fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Bytes that one more slot takes.
    pub(crate) fn slot_bytes(&self) -> u64 {
        2 * self.slot_bytes.iter().sum::<u64>()
    }

    /// The slot of a conversation that has one, which counts as used now.
    pub(crate) fn slot_of(&mut self, owner: u64) -> Option<u32> {
        self.clock += 1;
        let index = self.slots.iter().position(|slot| slot.owner == Some(owner))?;
        self.slots[index].used = self.clock;
        Some(index as u32)
    }

    /// The slot of a conversation that has one.
    pub(crate) fn held_by(&self, owner: u64) -> Option<u32> {
        self.slots.iter().position(|slot| slot.owner == Some(owner)).map(|index| index as u32)
    }

    /// Gives a free slot to a conversation.
    pub(crate) fn take_free(&mut self, owner: u64) -> Option<u32> {
        let index = self.slots.iter().position(|slot| slot.owner.is_none())?;
        self.clock += 1;
        (self.slots[index].owner, self.slots[index].used) = (Some(owner), self.clock);
        Some(index as u32)
    }

    /// Takes the slot of the conversation that was used least recently, of those that `may` lose it, and says which it was.
    pub(crate) fn evict(&mut self, may: impl Fn(u64) -> bool) -> Option<u64> {
        let candidates = self.slots.iter_mut().filter(|slot| slot.owner.is_some_and(&may));
        candidates.min_by_key(|slot| slot.used)?.owner.take()
    }

    /// Frees the slot of a conversation that ends.
    pub(crate) fn release(&mut self, owner: u64) {
        self.slots.iter_mut().filter(|slot| slot.owner == Some(owner)).for_each(|slot| slot.owner = None);
    }

    /// Buffers for more slots, and whether there is memory for them.
    pub(crate) fn larger(&self, gpu: &Gpu, slots: u32) -> (Result<CacheBuffers, GpuError>, Vec<Outcome>) {
        let mut allocated = Vec::new();
        (allocate(gpu, &self.slot_bytes, slots, &mut allocated), allocated)
    }

    /// Moves everything that is stored to larger buffers. Bind groups of the old ones are of no use afterwards.
    pub(crate) fn adopt(&mut self, gpu: &Gpu, buffers: CacheBuffers, slots: u32) {
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        for ((old, new), bytes) in self.buffers.iter().zip(&buffers).zip(&self.slot_bytes) {
            let bytes = bytes * u64::from(self.slots());
            encoder.copy_buffer_to_buffer(&old.0, 0, &new.0, 0, bytes);
            encoder.copy_buffer_to_buffer(&old.1, 0, &new.1, 0, bytes);
        }
        gpu.queue.submit([encoder.finish()]);
        destroy(&self.buffers);
        self.buffers = buffers;
        self.slots.resize(slots as usize, Slot::default());
    }

    /// Notes that a slot's rows may hold numbers that are not finite.
    pub(crate) fn damage(&mut self, slot: u32) {
        self.slots[slot as usize].damaged = true;
    }

    /// Fills a damaged slot with zeros. At its first token a conversation reads a row that holds no token and weighs it with
    /// zero; NaN of an earlier conversation would survive that.
    pub(crate) fn repair(&mut self, gpu: &Gpu, slot: u32) {
        if !std::mem::take(&mut self.slots[slot as usize].damaged) {
            return;
        }
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        for ((keys, values), &bytes) in self.buffers.iter().zip(&self.slot_bytes) {
            encoder.clear_buffer(keys, u64::from(slot) * bytes, Some(bytes));
            encoder.clear_buffer(values, u64::from(slot) * bytes, Some(bytes));
        }
        gpu.queue.submit([encoder.finish()]);
    }

    /// Whether so many slots can be bound at once.
    pub(crate) fn can_bind(&self, gpu: &Gpu, slots: u32) -> bool {
        self.slot_bytes.iter().all(|bytes| bytes * u64::from(slots) <= gpu.largest_binding())
    }
}

impl Drop for CachePool {
    fn drop(&mut self) {
        destroy(&self.buffers);
    }
}

fn allocate(
    gpu: &Gpu,
    slot_bytes: &[u64],
    slots: u32,
    allocated: &mut Vec<Outcome>,
) -> Result<CacheBuffers, GpuError> {
    let mut storage = |index: usize, bytes: u64| {
        let what = format!("cache {index}");
        let (buffer, outcome) = gpu.allocate(&*what, bytes, || gpu.storage(&what, bytes));
        allocated.extend(outcome.now()?);
        buffer
    };
    let bytes = slot_bytes.iter().map(|bytes| bytes * u64::from(slots));
    bytes.enumerate().map(|(index, bytes)| Ok((storage(index, bytes)?, storage(index, bytes)?))).collect()
}

/// A browser frees buffers when it collects garbage, which it does not do for want of GPU memory. So what is large is given
/// back here; what is under way ends first.
fn destroy(buffers: &[(wgpu::Buffer, wgpu::Buffer)]) {
    for (keys, values) in buffers {
        keys.destroy();
        values.destroy();
    }
}
