//! Paged experts: those used recently have a page on the GPU, the others are read on demand.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    rc::Rc,
};

use futures_util::lock::Mutex;
use rullama_gguf::Model;

use super::{
    GpuWeights, Manifest, ResidentTensor,
    manifest::{ExpertPool, find},
    resident::{PlaneWords, read_rows, write_rows},
};
use crate::GpuError;

/// The pages of one pool, shared by all conversations. A page may be evicted once the commands that read it were submitted.
pub(crate) struct Pages {
    pages: RefCell<Vec<Page>>,
    clock: Cell<u64>,
    /// One conversation at a time: two that evict each other's experts would make no progress.
    turn: Mutex<()>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Page {
    expert: Option<u32>,
    /// When it was used last.
    used: u64,
}

impl Pages {
    pub(super) fn new(count: u32) -> Self {
        let pages = RefCell::new(vec![Page::default(); count as usize]);
        Self { pages, clock: Cell::new(0), turn: Mutex::new(()) }
    }

    /// The page of an expert, if it has one.
    pub(crate) fn page(&self, expert: u32) -> Option<u32> {
        let pages = self.pages.borrow();
        pages.iter().position(|page| page.expert == Some(expert)).map(|page| page as u32)
    }

    /// Uploads experts. Another call may evict them, so submit the commands that use them before awaiting anything.
    pub(crate) async fn upload(
        &self,
        set: &GpuWeights,
        manifest: &Manifest,
        pool: &ExpertPool,
        tensors: &[Rc<ResidentTensor>],
        wanted: &BTreeSet<u32>,
    ) -> Result<(), GpuError> {
        let (gpu, model) = (set.gpu(), set.source());
        let _turn = self.turn.lock().await;
        while let Some(&expert) = wanted.iter().find(|&&expert| self.page(expert).is_none()) {
            let mut read = Vec::new();
            for &packed in &pool.packed {
                read.push((packed, read_expert(model, manifest, pool, packed, expert).await?));
            }
            let page = self.evict(wanted);
            for (index, planes) in read {
                let packed = &manifest.packed[index];
                let rows = packed.parts[0].rows / u64::from(pool.experts);
                write_rows(gpu, packed, &tensors[index].buffers, u64::from(page) * rows, &planes);
            }
            gpu.queue.submit([]);
            // If the write failed, the page stays empty.
            gpu.check()?;
            self.pages.borrow_mut()[page as usize].expert = Some(expert);
        }
        let now = self.clock.get() + 1;
        self.clock.set(now);
        for page in self.pages.borrow_mut().iter_mut() {
            if page.expert.is_some_and(|expert| wanted.contains(&expert)) {
                page.used = now;
            }
        }
        Ok(())
    }

    /// Evicts the least recently used page, except those in `wanted`.
    fn evict(&self, wanted: &BTreeSet<u32>) -> u32 {
        let mut pages = self.pages.borrow_mut();
        let unwanted = |page: &Page| page.expert.is_none_or(|expert| !wanted.contains(&expert));
        let candidates = pages.iter().enumerate().filter(|(_, page)| unwanted(page));
        let (index, _) = candidates
            .min_by_key(|(_, page)| (page.expert.is_some(), page.used))
            .expect("a step needs no more experts than there are pages");
        pages[index].expert = None;
        index as u32
    }
}

async fn read_expert(
    model: &Model,
    manifest: &Manifest,
    pool: &ExpertPool,
    packed: usize,
    expert: u32,
) -> Result<PlaneWords, GpuError> {
    let packed = &manifest.packed[packed];
    let part = &packed.parts[0];
    let rows = part.rows / u64::from(pool.experts);
    let first = u64::from(expert) * rows;
    read_rows(model, &find(model, &part.tensor)?, &packed.packing, first..first + rows).await
}
