//! Which weights are matrices of products, and which share an input.

use std::collections::HashSet;

use rullama_graph::{Graph, Node, Op, Value, Weight};

/// Tensors that are matrices of products.
pub(super) fn multiplied(graph: &Graph) -> HashSet<&str> {
    let weights = graph.nodes().iter().filter_map(|node| match node.op {
        Op::Linear { weight, .. } | Op::ExpertLinear { weight, .. } => Some(weight),
        _ => None,
    });
    weights.map(|weight| graph.weight(weight).tensor.as_str()).collect()
}

/// Weights that have the same input: queries, keys and values; gate and up.
pub(super) fn stacks(graph: &Graph) -> Vec<Vec<Weight>> {
    // Products of all rows and of the last row may share a stack.
    let source = |value: Value| match graph.value(value).op {
        Op::LastRow { x } => x,
        _ => value,
    };
    let mut stacks: Vec<(Value, Vec<Weight>)> = Vec::new();
    for Node { op, .. } in graph.nodes() {
        let Op::Linear { x, weight, .. } = *op else { continue };
        let x = source(x);
        // Products of one input follow each other closely in a graph, so only the last four stacks are searched.
        match stacks.iter_mut().rev().take(4).find(|(input, _)| *input == x) {
            Some((_, stack)) if !stack.contains(&weight) => stack.push(weight),
            Some(_) => {}
            None => stacks.push((x, vec![weight])),
        }
    }
    stacks.into_iter().map(|(_, stack)| stack).filter(|stack| stack.len() > 1).collect()
}
