//! Which kernels choose a token, and how many workgroups of each.
//!
//! | options | dispatches |
//! |---|---|
//! | the likeliest | maxima, greedy |
//! | `top_k` up to [`CAPACITY`] | maxima, top_k |
//! | neither `top_k` nor `top_p` | maxima, weigh, by_id |
//! | `top_p` alone, or a larger `top_k` | sort_blocks, accumulate, by_rank |
//!
//! Bias and penalties are applied by the first of them, `min_p` by the last: neither needs one of its own.

use crate::{Fragment, Kernel, KernelSpec, params::SampleParams, tuning::MAXIMA_DEPTH};

/// Threads per workgroup: what WebGPU guarantees.
const LANES: u32 = 256;
/// Ranks that can be sorted in workgroup memory, beside what else is there.
pub(super) const CAPACITY: u32 = 1024;
/// Tokens in a row that are summed up, or sorted, together.
pub(super) const BLOCK: u32 = CAPACITY;

/// The kernels that choose a token, by the options of sampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SamplingPath {
    /// The most probable token.
    Greedy,
    /// One of the `top_k` most probable tokens.
    TopK,
    /// One of all tokens, in the order of their ids.
    ById,
    /// One of any number of tokens, in the order of their probability.
    ByRank,
}

impl SamplingPath {
    pub(super) const ALL: [Self; 4] = [Self::Greedy, Self::TopK, Self::ById, Self::ByRank];

    pub(super) fn of(params: &SampleParams) -> Self {
        match params.top_k {
            _ if params.temperature <= 0.0 => Self::Greedy,
            1..=CAPACITY => Self::TopK,
            0 if !params.has_top_p() => Self::ById,
            _ => Self::ByRank,
        }
    }

    /// The kernels in their order, with numbers of workgroups.
    pub(super) fn kernels(self, sizes: &Sizes) -> Vec<(KernelSpec, u32)> {
        use Fragment as F;
        let (lanes, blocks) = (sizes.maxima() / LANES, sizes.blocks());
        let per_lane = blocks.div_ceil(LANES);
        let maxima =
            (first(Kernel::SampleMaxima, LANES * MAXIMA_DEPTH).constant("DEPTH", MAXIMA_DEPTH), lanes);
        let with_maxima = |kernel| spec(kernel).constant("MAXIMA", sizes.maxima());
        let with_blocks = |spec: KernelSpec| spec.constant("BLOCK", BLOCK).constant("BLOCKS", blocks);
        let weighing =
            |spec: KernelSpec| spec.with(F::SampleWeight).with(F::SampleSum).constant("UNIT", sizes.unit());
        let sorting = |spec: KernelSpec| spec.with(F::SampleSort).constant("CAPACITY", CAPACITY);
        match self {
            Self::Greedy => vec![maxima, (with_maxima(Kernel::SampleGreedy).with(F::SampleFinish), 1)],
            Self::TopK => {
                let last = sorting(weighing(with_maxima(Kernel::SampleTopK).constant("DEPTH", MAXIMA_DEPTH)));
                vec![maxima, (last.with(F::SampleTopP).with(F::SampleFinish), 1)]
            }
            Self::ById => {
                let weigh = weighing(with_maxima(Kernel::SampleWeigh)).constant("BLOCK", BLOCK);
                let last = with_blocks(weighing(spec(Kernel::SampleById))).constant("PER_LANE", per_lane);
                vec![maxima, (weigh, blocks), (last.with(F::SampleFinish), 1)]
            }
            Self::ByRank => {
                let sort = sorting(first(Kernel::SampleSortBlocks, CAPACITY));
                let accumulate = with_blocks(weighing(spec(Kernel::SampleAccumulate)));
                let last = with_blocks(weighing(spec(Kernel::SampleByRank))).constant("PER_LANE", per_lane);
                let last = last.with(F::SampleTopP).with(F::SampleFinish);
                vec![(sort, blocks), (accumulate, blocks), (last, 1)]
            }
        }
    }
}

fn spec(kernel: Kernel) -> KernelSpec {
    let spec = KernelSpec::new(kernel).with(Fragment::SampleParams).with(Fragment::SampleLong);
    spec.with(Fragment::SampleRank).constant("LANES", LANES)
}

/// A kernel that looks at logits first.
fn first(kernel: Kernel, range: u32) -> KernelSpec {
    spec(kernel).with(Fragment::SampleAdjust).constant("RANGE", range)
}

/// What follows from the size of a vocabulary.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) vocabulary: u32,
}

impl Sizes {
    pub(super) fn new(vocabulary: u32) -> Self {
        Self { vocabulary }
    }

    pub(super) fn maxima(self) -> u32 {
        self.vocabulary.div_ceil(LANES * MAXIMA_DEPTH) * LANES
    }

    pub(super) fn blocks(self) -> u32 {
        self.vocabulary.div_ceil(BLOCK)
    }

    /// The high word of the largest weight, such that all weights together stay below 2⁶³.
    fn unit(self) -> u32 {
        let bits = self.vocabulary.next_power_of_two().trailing_zeros().max(18);
        1 << (30 - bits)
    }
}
