//! Which products may be computed split-K, so that their consumer adds partial sums.
//!
//! A product over a long x stages x in several pieces, because all of x does not fit into workgroup memory. With split-K
//! each piece has workgroups of its own, which do not wait for each other, and each stores a partial sum. A consumer whose
//! prologue computes its input can add them. Every workgroup of the consumer reads all partial sums, so a consumer with few
//! workgroups accepts more of them.

use std::collections::{HashMap, HashSet};

use rullama_graph::{Graph, Value};

use super::{
    StepShape,
    consumers::Consumers,
    stage::{Input, InputSource, Linear, Stage},
};
use crate::tuning::{
    MOST_DECODED_ROWS, MOST_RESIDUAL_SPLITS, NARROW_CONSUMER_SPLITS, NARROW_OUTPUTS, WIDE_CONSUMER_SPLITS,
};

/// Matrix products that may be computed split-K: their only consumer can add partial sums. Maps each to its maximum number of
/// splits. In steps of one row that is a product whose prologue computes its input, in steps of a few rows a residual sum.
pub(super) fn split_k_limits(graph: &Graph, shape: StepShape, stages: &[Stage]) -> HashMap<Value, u32> {
    let Consumers { consumers, .. } = Consumers::new(graph, shape.decodes);
    let mut found: HashMap<Value, u32> = HashMap::new();
    let mut others = HashSet::new();
    for stage in stages {
        match stage {
            Stage::Linear(linear) => {
                if let Input::Prologue { source: InputSource::Sum(sum), .. } = linear.input {
                    if shape.rows > 1 {
                        others.insert(sum.branch);
                        continue;
                    }
                    let most =
                        if is_narrow(graph, linear) { NARROW_CONSUMER_SPLITS } else { WIDE_CONSUMER_SPLITS };
                    found.entry(sum.branch).and_modify(|least| *least = most.min(*least)).or_insert(most);
                }
            }
            Stage::Residual { sum, .. } if (2..=MOST_DECODED_ROWS).contains(&shape.rows) => {
                found.insert(sum.branch, MOST_RESIDUAL_SPLITS);
            }
            Stage::Residual { sum, .. } => {
                others.insert(sum.branch);
            }
            // These stages count as further consumers below.
            Stage::Plain(_) | Stage::Attention(_) | Stage::PerLayer(_) => {}
        }
    }
    found.retain(|value, _| consumers[value.index()].len() == 1 && !others.contains(value));
    found
}

/// True if a product makes only a few workgroups.
fn is_narrow(graph: &Graph, linear: &Linear) -> bool {
    let outputs: u32 = linear.outputs.iter().map(|&(weight, _)| graph.weight(weight).rows).sum();
    linear.routing.is_none() && outputs <= NARROW_OUTPUTS
}
