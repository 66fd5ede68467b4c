//! The memory of a step: whether there is enough, and buffers that steps use again.

use rullama_graph::{Graph, RowCounts};

use crate::{Caches, CpuError};

/// Buffers of values that nobody needs any more.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    free: Vec<Vec<f32>>,
}

impl Pool {
    /// A buffer of `len` values, of whatever was in it. Steps of one size ask for the same buffers in the same order, so
    /// all but the first of them allocate nothing.
    pub(crate) fn take(&mut self, len: usize) -> Vec<f32> {
        let fitting = self.free.iter().enumerate().filter(|(_, buffer)| buffer.capacity() >= len);
        let best = fitting.min_by_key(|(_, buffer)| buffer.capacity()).map(|(index, _)| index);
        let mut buffer = best.map(|index| self.free.swap_remove(index)).unwrap_or_default();
        buffer.resize(len, 0.0);
        buffer
    }

    pub(crate) fn give_back(&mut self, buffer: Vec<f32>) {
        if buffer.capacity() > 0 {
            self.free.push(buffer);
        }
    }
}

/// Refuses a step that there is no memory for, before it allocates anything. The widths of a model are those of its file,
/// which may be made to ask for more than any machine has.
pub(crate) fn check(graph: &Graph, caches: &Caches, rows: usize, counts: &RowCounts) -> Result<(), CpuError> {
    let bytes = caches.growth(rows).saturating_add(peak(graph, counts));
    // A quarter more: weights are unpacked besides, and many small blocks need more room than one large block.
    let room = bytes.saturating_add(bytes / 4);
    let all = usize::try_from(room).ok().filter(|&room| Vec::<u8>::new().try_reserve_exact(room).is_ok());
    all.map(|_| ()).ok_or(CpuError::OutOfMemory { rows, cached: caches.len(), bytes })
}

/// The most bytes that the values of a step have at once. An operation also needs about as much as its result while it is
/// computed.
fn peak(graph: &Graph, counts: &RowCounts) -> u64 {
    let bytes = |index: usize| {
        let shape = graph.nodes()[index].shape;
        4 * u64::from(shape.width) * counts.of(shape.rows) as u64
    };
    let last_uses = graph.last_uses();
    let (mut live, mut most) = (0, 0);
    for (index, node) in graph.nodes().iter().enumerate() {
        live += bytes(index);
        most = most.max(live + bytes(index));
        let mut inputs: Vec<usize> = node.op.inputs().map(|input| input.index()).collect();
        inputs.sort_unstable();
        inputs.dedup();
        live -= inputs.into_iter().filter(|&input| last_uses[input] == index).map(bytes).sum::<u64>();
    }
    most
}
