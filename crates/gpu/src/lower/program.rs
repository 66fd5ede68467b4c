//! Programs: the dispatches of a step, which name the buffers that they read and write. A plan binds them.

use rullama_graph::{Cache, Domain, Rows};

use super::RopeKey;
use crate::{
    Experts, KernelSpec, UniformValue, attention::RowAttention, rows::StepSize, tuning::REUSE_RATIO,
};

/// A buffer for intermediate values. Two that are never needed at the same time share memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Scratch(pub(crate) usize);

/// What a dispatch reads or writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum BufferRef {
    Scratch(Scratch),
    /// A shard of a packed tensor.
    Shard {
        packed: usize,
        shard: usize,
    },
    /// All norm weights and other vectors.
    Vectors,
    Keys(Cache),
    Values(Cache),
    /// Token ids: the last one sampled for each conversation slot, then those the host wrote for a prompt.
    Tokens,
    /// Rows that a tower has computed, which take the place of tokens.
    SoftRows,
    /// The rows of the step's tokens, of a table that stays in the file.
    Rows {
        packed: usize,
    },
    /// For each token, its row among these.
    RowNumbers,
    /// A routing with page indices in place of expert indices.
    Pages,
    /// Cosines and sines of one kind of rotation.
    RopeTable(RopeKey),
}

/// How many workgroups there are along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    Fixed(u32),
    Rows(Rows),
    /// One for each block of this many rows.
    Blocks(Rows, u32),
    /// One for each `block` pairs of a row and a head; a row has `times` heads.
    Pairs {
        rows: Rows,
        times: u32,
        block: u32,
    },
    /// The maximum number of tiles when rows are grouped by expert.
    Tiles {
        rows: Rows,
        experts: Experts,
        tile_rows: u32,
    },
    /// Splits of the context.
    Splits(RowAttention),
}

impl Count {
    /// The domain whose rows are counted.
    pub(crate) fn domain(self) -> Option<Domain> {
        match self {
            Self::Rows(Rows::Of(domain))
            | Self::Blocks(Rows::Of(domain), _)
            | Self::Pairs { rows: Rows::Of(domain), .. }
            | Self::Tiles { rows: Rows::Of(domain), .. } => Some(domain),
            _ => None,
        }
    }

    /// How many there are in a step.
    pub(crate) fn at(self, step: StepSize) -> u32 {
        let count = |rows: Rows| match rows {
            Rows::Last => step.last,
            Rows::Step | Rows::Of(_) => step.rows,
        };
        match self {
            Self::Fixed(count) => count,
            Self::Rows(rows) => count(rows),
            Self::Blocks(rows, size) => count(rows).div_ceil(size),
            Self::Pairs { rows, times, block } => (count(rows) * times).div_ceil(block),
            Self::Tiles { rows, experts, tile_rows } => experts.tiles(count(rows), tile_rows),
            Self::Splits(attention) => attention.splits(step.end),
        }
    }
}

/// One dispatch.
#[derive(Debug)]
pub(crate) struct Dispatch {
    /// What it computes, for reports.
    pub(crate) label: String,
    pub(crate) spec: KernelSpec,
    /// Values of the kernel's uniform variables.
    pub(crate) uniforms: Vec<UniformValue>,
    /// Buffers by the names that the kernel uses.
    pub(crate) buffers: Vec<(&'static str, BufferRef)>,
    pub(crate) workgroups: [Count; 3],
    /// Bytes of weights that it reads, for reports.
    pub(crate) weight_bytes: u64,
}

/// A point where the host reads the routing and uploads the experts it names before the next dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pause {
    /// The first dispatch that needs the experts.
    pub(crate) before: usize,
    pub(crate) routing: Scratch,
    /// Rows and columns of the routing.
    pub(crate) rows: Rows,
    pub(crate) width: u32,
    /// The experts' pool.
    pub(crate) pool: usize,
}

/// A graph lowered for steps of one shape.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) dispatches: Vec<Dispatch>,
    /// Its pauses, in order.
    pub(crate) pauses: Vec<Pause>,
    /// Bytes of each scratch buffer.
    pub(crate) scratch: Vec<u64>,
    /// The buffers of the graph's inputs, in order.
    pub(crate) inputs: Vec<Scratch>,
    /// The buffers of the graph's outputs, in order.
    pub(crate) outputs: Vec<Scratch>,
    /// The number of rows of each domain.
    pub(crate) domains: Vec<u32>,
}

impl Program {
    /// Adds a scratch buffer.
    pub(crate) fn allocate(&mut self, bytes: u64) -> Scratch {
        self.scratch.push(bytes.max(16));
        Scratch(self.scratch.len() - 1)
    }

    /// Bytes of a scratch buffer.
    pub(crate) fn bytes(&self, scratch: &Scratch) -> u64 {
        self.scratch[scratch.0]
    }

    /// Assigns scratch buffers to GPU buffers, and gives the size of each. Two share one if they are never needed at the same
    /// time. The caller supplies the buffers of inputs and outputs.
    pub(crate) fn assign(&self) -> (Vec<usize>, Vec<u64>) {
        let mut last = vec![0; self.scratch.len()];
        let used = |dispatch: &Dispatch| -> Vec<Scratch> {
            let buffers = dispatch.buffers.iter();
            buffers
                .filter_map(
                    |(_, buffer)| {
                        if let BufferRef::Scratch(scratch) = buffer { Some(*scratch) } else { None }
                    },
                )
                .filter(|scratch| !self.inputs.contains(scratch) && !self.outputs.contains(scratch))
                .collect()
        };
        for (index, dispatch) in self.dispatches.iter().enumerate() {
            used(dispatch).iter().for_each(|scratch| last[scratch.0] = index);
        }
        for pause in &self.pauses {
            last[pause.routing.0] = last[pause.routing.0].max(pause.before);
        }
        let mut assigned = vec![usize::MAX; self.scratch.len()];
        let mut sizes: Vec<u64> = Vec::new();
        let mut free: Vec<usize> = Vec::new();
        for (index, dispatch) in self.dispatches.iter().enumerate() {
            let used = used(dispatch);
            for scratch in &used {
                if assigned[scratch.0] == usize::MAX {
                    assigned[scratch.0] = take(&mut free, &mut sizes, self.scratch[scratch.0]);
                }
            }
            for scratch in used {
                // A dispatch may name a buffer twice, but it is freed once.
                if last[scratch.0] == index && !free.contains(&assigned[scratch.0]) {
                    free.push(assigned[scratch.0]);
                }
            }
        }
        (assigned, sizes)
    }
}

/// Takes the free buffer of the closest size and enlarges it if necessary, or makes a new one.
fn take(free: &mut Vec<usize>, sizes: &mut Vec<u64>, bytes: u64) -> usize {
    let distance = |buffer: &usize| sizes[*buffer].abs_diff(bytes);
    let best = (0..free.len()).min_by_key(|&index| distance(&free[index]));
    // Reuse a buffer only if the sizes differ by at most this factor: otherwise it would grow far or stay mostly empty.
    match best {
        Some(index)
            if sizes[free[index]] <= REUSE_RATIO * bytes && bytes <= REUSE_RATIO * sizes[free[index]] =>
        {
            let buffer = free.swap_remove(index);
            sizes[buffer] = sizes[buffer].max(bytes);
            buffer
        }
        _ => {
            sizes.push(bytes);
            sizes.len() - 1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kernel;

    fn dispatch(scratch: &[Scratch]) -> Dispatch {
        Dispatch {
            label: String::new(),
            spec: KernelSpec::new(Kernel::Copy),
            uniforms: Vec::new(),
            buffers: scratch.iter().map(|&scratch| ("x", BufferRef::Scratch(scratch))).collect(),
            workgroups: [Count::Fixed(1); 3],
            weight_bytes: 0,
        }
    }

    #[test]
    fn buffers_that_are_never_needed_together_share_memory() {
        let mut program = Program::default();
        let [a, b, c, d] = [64, 64, 64, 64].map(|bytes| program.allocate(bytes));
        program.dispatches = vec![dispatch(&[a, b]), dispatch(&[b, c]), dispatch(&[c, d])];
        program.outputs = vec![d];
        let (assigned, sizes) = program.assign();
        assert_eq!(sizes.len(), 2);
        for (one, other) in [(a, b), (b, c)] {
            assert_ne!(assigned[one.0], assigned[other.0]);
        }
    }
}
