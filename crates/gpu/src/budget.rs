//! What a model needs of a GPU's memory, known before a byte of it is read.

use std::{fmt, rc::Rc};

use rullama_graph::{Graph, Op};

use crate::{
    CacheFormat, CacheLayout as _, GpuError, ModelOptions,
    lower::Program,
    options::capacities,
    sample,
    step_buffers::{output_bytes, soft_width},
    weights::{Manifest, STAGING},
};

/// Bytes that a model and one conversation with it take. Each further conversation takes [`caches`](Self::caches)
/// again; the rest is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Budget {
    /// Tokens that the conversation may have.
    pub context: u32,
    /// Weights.
    pub weights: u64,
    /// Keys and values of the conversation.
    pub caches: u64,
    /// What lies between dispatches, logits, and what sampling may need.
    pub scratch: u64,
    /// What is on its way to the GPU or back.
    pub staging: u64,
}

impl Budget {
    /// What the first conversation takes beside the weights.
    pub(crate) fn conversation(&self) -> u64 {
        self.caches + self.scratch + self.staging
    }

    /// All of it together.
    pub fn total(&self) -> u64 {
        self.weights + self.caches + self.scratch + self.staging
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Self { weights, caches, scratch, staging, .. } = self;
        let [weights, caches, scratch, staging] = [weights, caches, scratch, staging].map(Size);
        write!(f, "weights {weights}, caches {caches}, scratch {scratch}, staging {staging}")
    }
}

/// What a model may not be larger than.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bound {
    /// The memory that the caller allows.
    Memory {
        /// Bytes of it.
        allowed: u64,
    },
    /// What a kernel can see of one buffer.
    Binding {
        /// What is larger.
        what: String,
        /// Its size.
        bytes: u64,
        /// The most that can be seen.
        allowed: u64,
    },
}

impl Bound {
    pub(crate) fn describe(&self, budget: &Budget) -> String {
        let context = budget.context;
        match *self {
            Self::Memory { allowed } => format!(
                "the model needs {} of GPU memory with a context of {context}, but only {} is allowed ({budget})",
                Size(budget.total()),
                Size(allowed),
            ),
            Self::Binding { ref what, bytes, allowed } => format!(
                "{what} needs {} with a context of {context}, but this GPU can bind only {} at once ({budget})",
                Size(bytes),
                Size(allowed),
            ),
        }
    }
}

/// A number of bytes for people.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size(pub(crate) u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = |bits: u32| self.0 as f64 / (1_u64 << bits) as f64;
        match self.0 {
            0..0x400 => write!(f, "{} B", self.0),
            0x400..0x10_0000 => write!(f, "{:.1} KiB", unit(10)),
            0x10_0000..0x4000_0000 => write!(f, "{:.1} MiB", unit(20)),
            _ => write!(f, "{:.2} GiB", unit(30)),
        }
    }
}

/// What memory is needed for, with the size of the context left open.
pub(crate) struct Needs<'a> {
    graph: &'a Graph,
    cache_format: CacheFormat,
    most_rows: u32,
    weights: u64,
    logits: u64,
    /// What lies between dispatches, whatever the context.
    values: u64,
}

/// What there is of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Supply {
    /// Bytes that the caller allows.
    pub(crate) memory: Option<u64>,
    /// Bytes of the largest binding.
    pub(crate) binding: u64,
}

impl<'a> Needs<'a> {
    /// Of a graph that is lowered to these programs: one of each size that a conversation may come to have a plan for.
    pub(crate) fn new(
        graph: &'a Graph,
        manifest: &Manifest,
        options: &ModelOptions,
        programs: &[Rc<Program>],
    ) -> Self {
        let (cache_format, most_rows) = (options.cache, options.most_rows());
        let outputs: Vec<u64> = output_bytes(graph, options).collect();
        let logits = outputs[0];
        let soft_rows = 4 * u64::from(soft_width(graph)) * u64::from(most_rows);
        let mut ropes = Vec::new();
        for node in graph.nodes() {
            match node.op {
                Op::Rope { rope, .. } if !ropes.contains(&rope) => ropes.push(rope),
                _ => {}
            }
        }
        let turns: u64 = ropes.iter().map(|rope| 4 * u64::from(rope.head_width) * u64::from(most_rows)).sum();
        let plans: u64 = programs.iter().flat_map(|program| program.assign().1).sum();
        // Rows of tables and routings of experts, where either is not on the GPU as a whole; routings also come back.
        let streamed = manifest.row_bytes() + 2 * manifest.routing_bytes(graph, most_rows);
        let values = plans + turns + outputs.iter().sum::<u64>() + soft_rows + streamed;
        Self { graph, cache_format, most_rows, weights: manifest.bytes(), logits, values }
    }

    /// What a context of this size takes.
    fn at(&self, context: u32) -> Budget {
        let vocabulary = self.graph.value(self.graph.output()).shape.width;
        Budget {
            context,
            weights: self.weights,
            caches: self.caches(context).map(|(_, bytes)| 2 * bytes).sum(),
            scratch: self.values + sample::most_bytes(vocabulary, context),
            staging: STAGING.min(self.weights) + self.logits,
        }
    }

    /// The layer of each cache, and the bytes of its keys, or of its values.
    fn caches(&self, context: u32) -> impl Iterator<Item = (u32, u64)> {
        let caches = self.graph.caches().iter().zip(capacities(self.graph, context, self.most_rows));
        caches.map(|(cache, rows)| {
            (cache.layer, u64::from(rows) * self.cache_format.row_bytes(cache.kv_heads, cache.head_width))
        })
    }

    /// What a context of this size would be too large for.
    fn bound(&self, context: u32, supply: Supply) -> Option<Bound> {
        let Supply { memory, binding } = supply;
        let too_large = self.caches(context).find(|&(_, bytes)| bytes > binding);
        if let Some((layer, bytes)) = too_large {
            return Some(Bound::Binding {
                what: format!("the cache of layer {layer}"),
                bytes,
                allowed: binding,
            });
        }
        let allowed = memory.filter(|&memory| self.at(context).total() > memory)?;
        Some(Bound::Memory { allowed })
    }

    /// The budget of a context that fits.
    pub(crate) fn check(&self, context: u32, supply: Supply) -> Result<Budget, GpuError> {
        let budget = self.at(context);
        let Some(bound) = self.bound(context, supply) else { return Ok(budget) };
        let largest_context = self.largest_context(context.saturating_sub(1), supply);
        Err(GpuError::OutOfBudget { budget, bound, largest_context })
    }

    /// The largest context that fits, up to `most`. None if not even a context of one token does.
    pub(crate) fn largest_context(&self, most: u32, supply: Supply) -> Option<u32> {
        // A larger context never takes less memory, so a binary search finds it.
        let (mut fits, mut does_not) = (0, most + 1);
        while does_not - fits > 1 {
            let middle = fits + (does_not - fits) / 2;
            match self.bound(middle, supply) {
                None => fits = middle,
                Some(_) => does_not = middle,
            }
        }
        (fits > 0).then_some(fits)
    }
}
