//! Which operations read each value of a graph.

use rullama_graph::{Graph, Op, Value};

/// The consumers of all values of a graph.
pub(super) struct Consumers {
    /// For each value, the value whose buffer holds it: itself, or when decoding the input of `last_row`.
    pub(super) source: Vec<Value>,
    /// For each value, the indices of the operations that read it. An index one past the last operation means a graph output.
    pub(super) consumers: Vec<Vec<usize>>,
}

impl Consumers {
    pub(super) fn new(graph: &Graph, decodes: bool) -> Self {
        let nodes = graph.nodes();
        let mut source: Vec<Value> = Vec::with_capacity(nodes.len());
        let mut consumers = vec![Vec::new(); nodes.len()];
        for (index, node) in nodes.iter().enumerate() {
            match node.op {
                Op::LastRow { x } if decodes => source.push(source[x.index()]),
                _ => {
                    source.push(graph.produced(index));
                    node.op.inputs().for_each(|input| consumers[source[input.index()].index()].push(index));
                }
            }
        }
        for (_, output) in graph.outputs() {
            consumers[source[output.index()].index()].push(nodes.len());
        }
        Self { source, consumers }
    }
}
