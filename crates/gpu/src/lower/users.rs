//! Who reads which value of a graph.

use rullama_graph::{Graph, Op, Value};

/// The users of all values, in steps of one row or of many.
pub(super) struct Users {
    /// What stands for each value: where there is one row, the last row of a value is the value.
    pub(super) source: Vec<Value>,
    /// The operations that read each value; one more than there are stands for whoever wants the graph's output.
    pub(super) users: Vec<Vec<usize>>,
}

impl Users {
    pub(super) fn new(graph: &Graph, one_row: bool) -> Self {
        let nodes = graph.nodes();
        let mut source: Vec<Value> = Vec::with_capacity(nodes.len());
        let mut users = vec![Vec::new(); nodes.len()];
        for (index, node) in nodes.iter().enumerate() {
            match node.op {
                Op::LastRow { x } if one_row => source.push(source[x.index()]),
                _ => {
                    source.push(graph.produced(index));
                    node.op.inputs().for_each(|input| users[source[input.index()].index()].push(index));
                }
            }
        }
        users[source[graph.output().index()].index()].push(nodes.len());
        Self { source, users }
    }
}
