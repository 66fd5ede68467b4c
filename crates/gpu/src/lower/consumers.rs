//! Which operations read each value of a graph.

use rullama_graph::{Graph, Op, Value};

/// The consumers of all values.
pub(super) struct Consumers {
    /// The value itself; where every row is the last of its conversation, the last rows of a value are that value.
    pub(super) source: Vec<Value>,
    /// The operations that read each value. The number of operations stands for the graph's output.
    pub(super) consumers: Vec<Vec<usize>>,
}

impl Consumers {
    pub(super) fn new(graph: &Graph, every_row_is_last: bool) -> Self {
        let nodes = graph.nodes();
        let mut source: Vec<Value> = Vec::with_capacity(nodes.len());
        let mut consumers = vec![Vec::new(); nodes.len()];
        for (index, node) in nodes.iter().enumerate() {
            match node.op {
                Op::LastRow { x } if every_row_is_last => source.push(source[x.index()]),
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
