//! A plan before it has buffers: dispatches that name what they read and write.

use rullama_graph::{Cache, Domain, Rows};

use super::RopeKey;
use crate::{Experts, KernelSpec, UniformValue, attention::RowAttention, rows::StepSize};

/// A buffer for values between dispatches. Several may turn out to be one, at different times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Scratch(pub(crate) usize);

/// What a dispatch reads or writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Slot {
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
    /// Tokens: what was last chosen for each slot, then what the host wrote for the step's rows.
    Tokens,
    /// Rows made by towers, in place of tokens.
    SoftRows,
    /// The rows of a packed tensor that the step's tokens name, where the tensor itself stays in the file.
    Rows {
        packed: usize,
    },
    /// Which of these rows belongs to each token.
    RowNumbers,
    /// A routing with pages in place of experts.
    Pages,
    /// The table of one way to rotate.
    Turns(RopeKey),
}

/// How many workgroups there are along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    Fixed(u32),
    Rows(Rows),
    /// Rows in blocks of some.
    Blocks(Rows, u32),
    /// Rows, each so many times over, in blocks of some.
    Pairs {
        rows: Rows,
        times: u32,
        block: u32,
    },
    /// Tiles of so many pairs of a row and one of its experts, as many as there can be.
    Tiles {
        rows: Rows,
        experts: Experts,
        tile_rows: u32,
    },
    /// Parts of the context that is seen.
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
    /// What it computes, in the words of the graph.
    pub(crate) what: String,
    pub(crate) spec: KernelSpec,
    /// The values of the kernel's uniform variables.
    pub(crate) uniforms: Vec<UniformValue>,
    /// Buffers by the names that the kernel gives them.
    pub(crate) buffers: Vec<(&'static str, Slot)>,
    pub(crate) workgroups: [Count; 3],
    /// Bytes of weights that it reads.
    pub(crate) weight_bytes: u64,
}

/// A stop on the way: experts that a routing names are brought before the next dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pause {
    /// The dispatch that has to wait.
    pub(crate) before: usize,
    pub(crate) routing: Scratch,
    /// Rows of the routing, and its columns.
    pub(crate) rows: Rows,
    pub(crate) width: u32,
    /// The experts' pool.
    pub(crate) pool: usize,
}

/// Dispatches, and the buffers between them.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) dispatches: Vec<Dispatch>,
    /// Where it stops, in order.
    pub(crate) pauses: Vec<Pause>,
    /// Bytes of each scratch buffer.
    pub(crate) scratch: Vec<u64>,
    /// Where each input of the graph is.
    pub(crate) inputs: Vec<Scratch>,
    /// Where each output of the graph is.
    pub(crate) outputs: Vec<Scratch>,
    /// Rows of each domain.
    pub(crate) domains: Vec<u32>,
}

impl Program {
    /// A new scratch buffer.
    pub(crate) fn claim(&mut self, bytes: u64) -> Scratch {
        self.scratch.push(bytes.max(16));
        Scratch(self.scratch.len() - 1)
    }

    /// Bytes of a scratch buffer.
    pub(crate) fn bytes(&self, scratch: &Scratch) -> u64 {
        self.scratch[scratch.0]
    }

    /// Which buffer each scratch buffer becomes, and how large these are. Two share one if nobody needs both at once. Inputs
    /// and outputs are left out: the caller supplies their buffers.
    pub(crate) fn assign(&self) -> (Vec<usize>, Vec<u64>) {
        let mut last = vec![0; self.scratch.len()];
        let used = |dispatch: &Dispatch| -> Vec<Scratch> {
            let slots = dispatch.buffers.iter();
            slots
                .filter_map(|(_, slot)| if let Slot::Scratch(scratch) = slot { Some(*scratch) } else { None })
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
                // A buffer that is named twice is freed once.
                if last[scratch.0] == index && !free.contains(&assigned[scratch.0]) {
                    free.push(assigned[scratch.0]);
                }
            }
        }
        (assigned, sizes)
    }
}

/// The free buffer that fits best, grown if need be; or a new one.
fn take(free: &mut Vec<usize>, sizes: &mut Vec<u64>, bytes: u64) -> usize {
    let distance = |buffer: &usize| sizes[*buffer].abs_diff(bytes);
    let best = (0..free.len()).min_by_key(|&index| distance(&free[index]));
    // A buffer that would have to grow far or be mostly empty is left for others.
    match best {
        Some(index) if sizes[free[index]] <= 8 * bytes && bytes <= 8 * sizes[free[index]] => {
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
            what: String::new(),
            spec: KernelSpec::new(Kernel::Copy),
            uniforms: Vec::new(),
            buffers: scratch.iter().map(|&scratch| ("x", Slot::Scratch(scratch))).collect(),
            workgroups: [Count::Fixed(1); 3],
            weight_bytes: 0,
        }
    }

    #[test]
    fn buffers_are_shared_by_what_is_never_alive_together() {
        let mut program = Program::default();
        let [a, b, c, d] = [64, 64, 64, 64].map(|bytes| program.claim(bytes));
        program.dispatches = vec![dispatch(&[a, b]), dispatch(&[b, c]), dispatch(&[c, d])];
        program.outputs = vec![d];
        let (assigned, sizes) = program.assign();
        assert_eq!(sizes.len(), 2);
        for (one, other) in [(a, b), (b, c)] {
            assert_ne!(assigned[one.0], assigned[other.0]);
        }
    }
}
