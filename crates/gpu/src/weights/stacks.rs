//! How a graph uses weights: which are multiplied with, and which with the same input.

use std::collections::HashSet;

use rullama_graph::{Graph, Node, Op, Value, Weight};

/// Tensors that something is multiplied with.
pub(super) fn multiplied(graph: &Graph) -> HashSet<&str> {
    let weights = graph.nodes().iter().filter_map(|node| match node.op {
        Op::Linear { weight, .. } | Op::ExpertLinear { weight, .. } => Some(weight),
        _ => None,
    });
    weights.map(|weight| graph.weight(weight).tensor.as_str()).collect()
}

/// Weights that have the same input: queries, keys and values; gate and up.
pub(super) fn stacks(graph: &Graph) -> Vec<Vec<Weight>> {
    // The last row of a value is the value itself, as far as weights are concerned.
    let source = |value: Value| match graph.value(value).op {
        Op::LastRow { x } => x,
        _ => value,
    };
    let mut stacks: Vec<(Value, Vec<Weight>)> = Vec::new();
    for Node { op, .. } in graph.nodes() {
        let Op::Linear { x, weight, .. } = *op else { continue };
        let x = source(x);
        match stacks.iter_mut().rev().take(4).find(|(input, _)| *input == x) {
            Some((_, stack)) if !stack.contains(&weight) => stack.push(weight),
            Some(_) => {}
            None => stacks.push((x, vec![weight])),
        }
    }
    stacks.into_iter().map(|(_, stack)| stack).filter(|stack| stack.len() > 1).collect()
}
