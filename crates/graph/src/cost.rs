//! What an operation costs: bytes that must move and numbers that must be computed.

use std::ops::AddAssign;

use crate::{Attended, Graph, Node, Op, RowCounts, SoftRows};

/// How large a step is, as far as its cost depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepExtent {
    /// Rows of each kind.
    pub rows: RowCounts,
    /// Tokens in the cache after it.
    pub context: u32,
}

impl StepExtent {
    /// A step of so many tokens of one conversation.
    pub fn tokens(rows: u32, context: u32) -> Self {
        Self { rows: RowCounts::tokens(rows as usize), context }
    }
}

/// What an operation, or a whole graph, costs. Activations and caches are counted as f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Bytes of weights read.
    pub weight_bytes: u64,
    /// Bytes of values and caches read.
    pub read_bytes: u64,
    /// Bytes of values and caches written.
    pub written_bytes: u64,
    /// Multiplications and additions, two to a product that is summed.
    pub flops: u64,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.weight_bytes += other.weight_bytes;
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
        self.flops += other.flops;
    }
}

impl Graph {
    /// What one operation costs in a step of this size.
    pub fn cost(&self, node: &Node, step: &StepExtent) -> Cost {
        let count = |node: &Node| step.rows.of(node.shape.rows) as u64;
        let values = |node: &Node| count(node) * u64::from(node.shape.width);
        let inputs: u64 = node.op.inputs().map(|input| values(self.value(input))).sum();
        let output = values(node);
        let rows = match node.op.inputs().next() {
            Some(input) => count(self.value(input)),
            None => count(node),
        };
        let mut cost = Cost {
            weight_bytes: node.op.weight().map_or(0, |weight| self.weight(weight).bytes),
            read_bytes: 4 * inputs,
            written_bytes: 4 * output,
            flops: output,
        };
        match node.op {
            Op::Embed { table, soft, .. } => {
                let info = self.weight(table);
                let row_bytes = info.bytes / u64::from(info.rows.max(1));
                cost.weight_bytes = rows * row_bytes;
                cost.read_bytes = if soft == SoftRows::Given { 4 * rows } else { 0 };
            }
            Op::Linear { weight, .. } => cost.flops = 2 * output * u64::from(self.weight(weight).width),
            Op::ExpertLinear { weight, routing, .. } => {
                let info = self.weight(weight);
                let used = u64::from(self.value(routing).shape.width / 2);
                // As many experts as rows could ask for, each read once.
                let experts = (rows * used).min(u64::from(info.matrices));
                cost.weight_bytes = info.bytes / u64::from(info.matrices.max(1)) * experts;
                cost.flops = 2 * output * u64::from(info.width);
            }
            Op::Attend { to: Attended::Cache { cache, .. }, shape, .. } => {
                let tokens = step.rows.step as u32;
                let seen = shape
                    .mask
                    .window
                    .map_or(step.context, |window| window.saturating_add(tokens).min(step.context));
                cost.read_bytes += 8 * u64::from(seen) * u64::from(self.caches[cache.index()].width());
                let per_row = shape.mask.window.map_or(step.context, |window| window.min(step.context));
                cost.flops = 4 * output * u64::from(per_row);
            }
            Op::Attend { to: Attended::Rows { .. }, shape, .. } => {
                let per_row = shape.mask.window.map_or(rows, |window| rows.min(u64::from(window)));
                cost.flops = 4 * output * per_row;
            }
            Op::AttendRelative { shape, .. } => {
                let per_row = shape.mask.window.map_or(rows, |window| rows.min(u64::from(window)));
                cost.flops = 6 * output * per_row;
            }
            Op::Convolve { shape, .. } => cost.flops = 18 * output * u64::from(shape.channels),
            Op::ConvolveColumns { rows, .. } => cost.flops = 2 * output * u64::from(rows),
            // What is given is there already.
            Op::Input { .. } => (cost.written_bytes, cost.flops) = (0, 0),
            Op::MeanRows { .. } => cost.flops = inputs,
            Op::StoreKv { .. } => cost.written_bytes = 4 * inputs,
            Op::LastRow { .. } => cost.read_bytes = 4 * output,
            Op::RmsNorm { .. } | Op::Rope { .. } | Op::Rotate { .. } => cost.flops = 3 * output,
            Op::LayerNorm { .. } => cost.flops = 5 * output,
            Op::GeluMul { .. } | Op::SoftCap { .. } | Op::Activate { .. } => cost.flops = 10 * output,
            Op::Combine { .. } => cost.flops = 2 * inputs,
            Op::Route { .. } => cost.flops = 4 * inputs,
            Op::Columns { .. } => cost.read_bytes = 4 * output,
            Op::Add { .. }
            | Op::Mul { .. }
            | Op::Scale { .. }
            | Op::ScaleBy { .. }
            | Op::Bias { .. }
            | Op::Clamp { .. } => {}
        }
        cost
    }

    /// What the whole graph costs in a step of this size.
    pub fn total_cost(&self, step: &StepExtent) -> Cost {
        let mut total = Cost::default();
        for node in &self.nodes {
            total += self.cost(node, step);
        }
        total
    }
}
