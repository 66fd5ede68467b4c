//! The graph, and the builder that checks it while it grows.

use std::cell::RefCell;

use crate::{
    AdapterPoint, Cache, CacheInfo, Domain, DomainInfo, DomainRows, Input, InputInfo, Op, RowCounts, Rows,
    Shape, SoftRows, Tensor, Value, Weight, WeightInfo,
};

/// One operation with what it produces.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// What is computed.
    pub op: Op,
    /// The shape of the result. What [`Op::StoreKv`] produces has a width of zero.
    pub shape: Shape,
    /// What the result is called, for traces and messages.
    pub name: Option<String>,
}

/// A model: operations in the order in which they are computed.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) weights: Vec<WeightInfo>,
    pub(crate) caches: Vec<CacheInfo>,
    domains: Vec<DomainInfo>,
    inputs: Vec<InputInfo>,
    points: u32,
    outputs: Vec<(String, Value)>,
}

impl Graph {
    /// Every operation in order. The operation at an index produces the value of that number.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The operation that produces `value`.
    pub fn value(&self, value: Value) -> &Node {
        &self.nodes[value.index()]
    }

    /// The value that the operation at an index produces.
    pub fn produced(&self, index: usize) -> Value {
        assert!(index < self.nodes.len(), "operation {index} of {}", self.nodes.len());
        Value(index as u32)
    }

    /// What is known of a weight.
    pub fn weight(&self, weight: Weight) -> &WeightInfo {
        &self.weights[weight.index()]
    }

    /// All weights, by number.
    pub fn weights(&self) -> &[WeightInfo] {
        &self.weights
    }

    /// All caches, by number.
    pub fn caches(&self) -> &[CacheInfo] {
        &self.caches
    }

    /// How many adapter points there are.
    pub fn adapter_points(&self) -> usize {
        self.points as usize
    }

    /// What the graph computes: its first output.
    pub fn output(&self) -> Value {
        self.outputs[0].1
    }

    /// Everything that the graph computes, with the name of each.
    pub fn outputs(&self) -> &[(String, Value)] {
        &self.outputs
    }

    /// All inputs, by number.
    pub fn inputs(&self) -> &[InputInfo] {
        &self.inputs
    }

    /// All domains of rows besides the step's, by number.
    pub fn domains(&self) -> &[DomainInfo] {
        &self.domains
    }

    /// Counts the rows of a step with `tokens` tokens of `conversations` conversations, in which `given` says how many rows
    /// the inputs of a domain have.
    pub fn row_counts(
        &self,
        tokens: usize,
        conversations: usize,
        given: impl Fn(Domain) -> usize,
    ) -> RowCounts {
        let mut domains: Vec<usize> = Vec::with_capacity(self.domains.len());
        for (index, info) in self.domains.iter().enumerate() {
            domains.push(match info.rows {
                DomainRows::Given => given(Domain(index as u32)),
                DomainRows::Grouped { of, group } => domains[of.index()].div_ceil(group as usize),
            });
        }
        RowCounts { step: tokens, last: conversations, domains }
    }

    /// For each value, the last operation that reads it; after that it can be forgotten.
    pub fn last_uses(&self) -> Vec<usize> {
        let mut last: Vec<usize> = (0..self.nodes.len()).collect();
        for (index, node) in self.nodes.iter().enumerate() {
            for input in node.op.inputs() {
                last[input.index()] = index;
            }
        }
        for (_, output) in &self.outputs {
            last[output.index()] = self.nodes.len();
        }
        last
    }
}

/// A graph under construction.
#[derive(Debug, Default)]
pub struct Builder {
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    nodes: Vec<Node>,
    weights: Vec<WeightInfo>,
    caches: Vec<CacheInfo>,
    domains: Vec<DomainInfo>,
    inputs: Vec<InputInfo>,
    points: u32,
    scope: String,
}

impl Builder {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares a weight. The same tensor and rows give the same handle.
    pub fn weight(&self, info: WeightInfo) -> Weight {
        let weights = &mut self.state.borrow_mut().weights;
        let index = weights.iter().position(|other| *other == info).unwrap_or_else(|| {
            weights.push(info);
            weights.len() - 1
        });
        Weight(index as u32)
    }

    /// Declares a cache.
    pub fn cache(&self, info: CacheInfo) -> Cache {
        let caches = &mut self.state.borrow_mut().caches;
        caches.push(info);
        Cache(caches.len() as u32 - 1)
    }

    /// Declares a set of rows, as many as its inputs are given.
    pub fn domain(&self, name: impl Into<String>) -> Domain {
        self.declare(DomainInfo { name: name.into(), rows: DomainRows::Given })
    }

    pub(crate) fn declare(&self, info: DomainInfo) -> Domain {
        let domains = &mut self.state.borrow_mut().domains;
        domains.push(info);
        Domain(domains.len() as u32 - 1)
    }

    /// Rows that are given by name when the graph is run.
    ///
    /// # Panics
    ///
    /// If another input has that name.
    #[track_caller]
    pub fn input(&self, name: impl Into<String>, rows: Rows, width: u32) -> Tensor<'_> {
        let (name, shape) = (name.into(), Shape { rows, width });
        let input = {
            let inputs = &mut self.state.borrow_mut().inputs;
            assert!(inputs.iter().all(|other| other.name != name), "two inputs are called `{name}`");
            inputs.push(InputInfo { name, shape });
            Input(inputs.len() as u32 - 1)
        };
        self.push(Op::Input { input }, shape)
    }

    /// The step's tokens as rows of `table` times `scale`.
    pub fn embed(&self, table: Weight, scale: f32, soft: SoftRows) -> Tensor<'_> {
        let width = self.weight_info(table).width;
        self.push(Op::Embed { table, scale, soft }, Shape { rows: Rows::Step, width })
    }

    /// Names given while `build` runs start with `scope` and a dot.
    pub fn scope<T>(&self, scope: impl std::fmt::Display, build: impl FnOnce() -> T) -> T {
        let outer = self.state.borrow().scope.clone();
        self.state.borrow_mut().scope = format!("{outer}{scope}.");
        let result = build();
        self.state.borrow_mut().scope = outer;
        result
    }

    /// The finished graph, which computes `output`. The builder is empty afterwards.
    pub fn finish(&self, output: Tensor<'_>) -> Graph {
        self.finish_with(&[("output", output)])
    }

    /// The finished graph, which computes all of these, each under a name of its own. The builder is empty afterwards.
    ///
    /// # Panics
    ///
    /// If there are none.
    #[track_caller]
    pub fn finish_with(&self, outputs: &[(&str, Tensor<'_>)]) -> Graph {
        assert!(!outputs.is_empty(), "a graph computes something");
        let outputs = outputs.iter().map(|&(name, output)| (name.to_owned(), output.value)).collect();
        let State { nodes, weights, caches, domains, inputs, points, .. } = self.state.take();
        Graph { nodes, weights, caches, domains, inputs, points, outputs }
    }

    pub(crate) fn push(&self, op: Op, shape: Shape) -> Tensor<'_> {
        let nodes = &mut self.state.borrow_mut().nodes;
        nodes.push(Node { op, shape, name: None });
        Tensor { builder: self, value: Value(nodes.len() as u32 - 1) }
    }

    pub(crate) fn name(&self, value: Value, name: &str) {
        let state = &mut *self.state.borrow_mut();
        state.nodes[value.index()].name = Some(format!("{}{name}", state.scope));
    }

    pub(crate) fn op(&self, value: Value) -> Op {
        self.state.borrow().nodes[value.index()].op
    }

    pub(crate) fn shape(&self, value: Value) -> Shape {
        self.state.borrow().nodes[value.index()].shape
    }

    pub(crate) fn weight_info(&self, weight: Weight) -> WeightInfo {
        self.state.borrow().weights[weight.index()].clone()
    }

    /// Whether an operation stores keys and values in a cache already.
    pub(crate) fn is_stored(&self, cache: Cache) -> bool {
        let stores = |node: &Node| matches!(node.op, Op::StoreKv { cache: stored, .. } if stored == cache);
        self.state.borrow().nodes.iter().any(stores)
    }

    pub(crate) fn cache_info(&self, cache: Cache) -> CacheInfo {
        self.state.borrow().caches[cache.index()].clone()
    }

    pub(crate) fn point(&self) -> AdapterPoint {
        let points = &mut self.state.borrow_mut().points;
        *points += 1;
        AdapterPoint(*points - 1)
    }
}
