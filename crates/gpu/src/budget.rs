//! How much GPU memory a model needs. Computed before weights are read.

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

/// Bytes that a model and one conversation need. Each further conversation needs [`caches`](Self::caches) again; the rest is
/// shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Budget {
    /// The most tokens of the conversation.
    pub context: u32,
    /// Weights.
    pub weights: u64,
    /// Keys and values of the conversation.
    pub caches: u64,
    /// Intermediate values, logits, and the most that sampling needs.
    pub scratch: u64,
    /// Buffers for transfers to the GPU and back.
    pub staging: u64,
}

impl Budget {
    /// Bytes of the first conversation, without the weights.
    pub(crate) fn conversation(&self) -> u64 {
        self.caches + self.scratch + self.staging
    }

    /// The sum of all.
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

/// The limit that a model exceeds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bound {
    /// The memory that the caller allows.
    Memory {
        /// Bytes that may be used.
        allowed: u64,
    },
    /// The most bytes of one buffer that a kernel can use.
    Binding {
        /// What exceeds it.
        what: String,
        /// Its size.
        bytes: u64,
        /// The limit.
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

/// A number of bytes, printed with a unit.
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

/// What memory is needed for, as far as it does not depend on the size of the context.
pub(crate) struct Needs<'a> {
    graph: &'a Graph,
    cache_format: CacheFormat,
    most_rows: u32,
    weights: u64,
    logits: u64,
    /// Intermediate values, whose sizes do not depend on the context.
    values: u64,
}

/// How much memory there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Supply {
    /// Bytes that the caller allows.
    pub(crate) memory: Option<u64>,
    /// Bytes of the largest binding.
    pub(crate) binding: u64,
}

impl<'a> Needs<'a> {
    /// The needs of a graph that is lowered to these programs, one for each shape of step that may be planned.
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
        let angles: u64 =
            ropes.iter().map(|rope| 4 * u64::from(rope.head_width) * u64::from(most_rows)).sum();
        let plans: u64 = programs.iter().flat_map(|program| program.assign().1).sum();
        // Rows of tables that stay in the file, and routings of paged experts, which are also read back.
        let streamed = manifest.row_bytes() + 2 * manifest.routing_bytes(graph, most_rows);
        let values = plans + angles + outputs.iter().sum::<u64>() + soft_rows + streamed;
        Self { graph, cache_format, most_rows, weights: manifest.bytes(), logits, values }
    }

    /// The budget of a context of this size.
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

    /// The layer of each cache, and the bytes of its keys. Its values need as many.
    fn caches(&self, context: u32) -> impl Iterator<Item = (u32, u64)> {
        let caches = self.graph.caches().iter().zip(capacities(self.graph, context, self.most_rows));
        caches.map(|(cache, rows)| {
            (cache.layer, u64::from(rows) * self.cache_format.row_bytes(cache.kv_heads, cache.head_width))
        })
    }

    /// The limit that a context of this size exceeds, if any.
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
        // A larger context never needs less memory, so a binary search finds the maximum.
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
