//! Which conversation has which slot of the cache pool.

use super::{Run, SharedRun};
use crate::{GpuError, GpuModel};

impl GpuModel {
    /// The slot of a conversation: its own, a free one, one from a larger pool, or an evicted one. `None` if a prompt is being
    /// read in every slot. The caller holds the turn.
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
}
