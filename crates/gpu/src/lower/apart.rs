//! Which products may be left in pieces, for their readers to add up.
//!
//! A product over a long x is made in pieces of x, one after another, because x has to fit into workgroup memory. Where each
//! piece has workgroups of its own instead, these stage a piece each and wait for nobody; but then somebody has to add
//! their sums up. A reader that makes its input on the way can: every one of its workgroups reads all sums, of which there
//! may be many where these workgroups are few.

use std::collections::{HashMap, HashSet};

use rullama_graph::{Graph, Value};

use super::{
    select::FEWEST_OUTPUTS,
    stage::{From, Input, Linear, Stage},
    users::Users,
};

/// Pieces that a reader of few workgroups adds up, and one of many.
const NARROW_PIECES: u32 = 32;
const WIDE_PIECES: u32 = 2;

/// The products that nobody reads but who adds pieces up in steps of one row, with how many these may be.
pub(super) fn added_up(graph: &Graph, stages: &[Stage]) -> HashMap<Value, u32> {
    let Users { users, .. } = Users::new(graph, true);
    let mut found: HashMap<Value, u32> = HashMap::new();
    let mut others = HashSet::new();
    for stage in stages {
        match stage {
            Stage::Linear(linear) => {
                if let Input::Made { from: From::Sum(sum), .. } = linear.input {
                    let most = if is_narrow(graph, linear) { NARROW_PIECES } else { WIDE_PIECES };
                    found.entry(sum.branch).and_modify(|least| *least = most.min(*least)).or_insert(most);
                }
            }
            Stage::Residual { sum, .. } => {
                others.insert(sum.branch);
            }
            // Whoever else reads a value is a second user of it, besides the norm on its way to the sum.
            Stage::Plain(_) | Stage::Attention(_) | Stage::PerLayer(_) => {}
        }
    }
    found.retain(|value, _| users[value.index()].len() == 1 && !others.contains(value));
    found
}

fn is_narrow(graph: &Graph, linear: &Linear) -> bool {
    let outputs: u32 = linear.outputs.iter().map(|&(weight, _)| graph.weight(weight).rows).sum();
    linear.routing.is_none() && outputs <= FEWEST_OUTPUTS
}
