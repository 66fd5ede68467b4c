//! The whole vocabulary.
//!
//! The enum is closed: a new operation makes the compiler list every place that owes an answer.

use crate::{AdapterPoint, AttendShape, Cache, Input, Value, Weight};

/// What stands in a row whose input is not a token but a row made by a tower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SoftRows {
    /// The row that was made, as it is.
    #[default]
    Given,
    /// What this token would have.
    Token(u32),
}

/// Rotary position embedding: columns `j` and `j + head_width / 2` of each head are turned by an
/// angle of `position · base^(−2j / head_width) / factor[j]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rope {
    /// Columns of a head.
    pub head_width: u32,
    /// The base of the frequencies.
    pub base: f32,
    /// How many pairs of columns are turned, counted from the first; the others stay as they are.
    pub pairs: u32,
    /// A divisor for each frequency; a huge one leaves its columns as they are too.
    pub factors: Option<Weight>,
}

/// The keys and values that attention reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attended {
    /// Those of rows that the same step computes. Attention then looks at these rows alone.
    Rows {
        /// Keys.
        k: Value,
        /// Values.
        v: Value,
    },
    /// Those of a cache: of earlier steps, and of this one as far as `stored` has stored them.
    Cache {
        /// The cache.
        cache: Cache,
        /// What [`Op::StoreKv`] produced.
        stored: Value,
    },
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Op {
    /// Rows that the caller passes by name when it runs the graph.
    Input {
        /// Which of the graph's inputs.
        input: Input,
    },
    /// The rows of `table` that the step's tokens name, times `scale`.
    Embed {
        /// A row for each token of the vocabulary.
        table: Weight,
        /// Factor for tokens' rows; soft rows are taken as they are.
        scale: f32,
        /// What soft rows get.
        soft: SoftRows,
    },
    /// `y = W · x`.
    Linear {
        /// The input.
        x: Value,
        /// The matrix.
        weight: Weight,
        /// Where an adapter may add to it.
        point: AdapterPoint,
    },
    /// `x / sqrt(mean(x²) + eps)` over each group of columns, times a weight if there is one.
    RmsNorm {
        /// The input.
        x: Value,
        /// One factor for each column of a group.
        weight: Option<Weight>,
        /// Columns of a group: the whole width, or a head.
        group: u32,
        /// Keeps the root away from zero.
        eps: f32,
    },
    /// Turns each head by its row's position.
    Rope {
        /// The input.
        x: Value,
        /// By how much.
        rope: Rope,
    },
    /// Appends keys and values to a cache. Produces a value without columns, which says that they are stored: attention
    /// that reads them names it.
    StoreKv {
        /// Keys.
        k: Value,
        /// Values.
        v: Value,
        /// Where they go.
        cache: Cache,
    },
    /// Softmax attention of each head, with a scale of one.
    Attend {
        /// Queries.
        q: Value,
        /// Keys and values.
        to: Attended,
        /// Heads and mask.
        shape: AttendShape,
    },
    /// `a + b`.
    Add {
        /// One side.
        a: Value,
        /// The other.
        b: Value,
    },
    /// `a · b`, column by column.
    Mul {
        /// One side.
        a: Value,
        /// The other.
        b: Value,
    },
    /// `x` times a constant.
    Scale {
        /// The input.
        x: Value,
        /// The constant.
        by: f32,
    },
    /// `x` times a weight of one value.
    ScaleBy {
        /// The input.
        x: Value,
        /// The factor.
        weight: Weight,
    },
    /// `gelu(gate) · up`, with the tanh form of gelu.
    GeluMul {
        /// What goes through gelu.
        gate: Value,
        /// What it is multiplied with.
        up: Value,
    },
    /// Columns `first .. first + width`.
    Columns {
        /// The input.
        x: Value,
        /// The first column.
        first: u32,
        /// How many.
        width: u32,
    },
    /// The last row of each conversation. What only these rows need is computed after this.
    LastRow {
        /// The input.
        x: Value,
    },
    /// The mean of each `group` neighbouring rows, of fewer at the end: rows of one domain become rows of another.
    MeanRows {
        /// The input.
        x: Value,
        /// Rows that become one.
        group: u32,
    },
    /// `cap · tanh(x / cap)`.
    SoftCap {
        /// The input.
        x: Value,
        /// The bound.
        cap: f32,
    },
    /// Softmax over all experts, of which the `used` most probable are kept and made to sum to one.
    /// Produces, for each row, their numbers and then their weights, most probable first.
    Route {
        /// One logit for each expert.
        logits: Value,
        /// How many are kept.
        used: u32,
    },
    /// `y_e = W_e · x` for each expert `e` that a row is routed to, one after another. `x` is one
    /// input for all of them, or one for each.
    ExpertLinear {
        /// The input.
        x: Value,
        /// Which experts.
        routing: Value,
        /// A matrix for each expert.
        weight: Weight,
        /// Where an adapter may add to it.
        point: AdapterPoint,
    },
    /// The sum of the experts' outputs, each times its routing weight and its own scale.
    Combine {
        /// One output for each expert used.
        x: Value,
        /// Which experts, and their weights.
        routing: Value,
        /// A factor for each expert of the model.
        scale: Option<Weight>,
    },
}

impl Rope {
    /// Turns every column of heads of `head_width`.
    pub fn new(head_width: u32, base: f32) -> Self {
        Self { head_width, base, pairs: head_width / 2, factors: None }
    }
}

impl Op {
    /// Its name, the same in every layer of the project.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Input { .. } => "input",
            Self::Embed { .. } => "embed",
            Self::Linear { .. } => "linear",
            Self::RmsNorm { .. } => "rms_norm",
            Self::Rope { .. } => "rope",
            Self::StoreKv { .. } => "store_kv",
            Self::Attend { .. } => "attend",
            Self::Add { .. } => "add",
            Self::Mul { .. } => "mul",
            Self::Scale { .. } => "scale",
            Self::ScaleBy { .. } => "scale_by",
            Self::GeluMul { .. } => "gelu_mul",
            Self::Columns { .. } => "columns",
            Self::LastRow { .. } => "last_row",
            Self::MeanRows { .. } => "mean_rows",
            Self::SoftCap { .. } => "soft_cap",
            Self::Route { .. } => "route",
            Self::ExpertLinear { .. } => "expert_linear",
            Self::Combine { .. } => "combine",
        }
    }

    /// The values it reads.
    pub fn inputs(&self) -> impl Iterator<Item = Value> + use<> {
        let [a, b, c] = match *self {
            Self::Input { .. } | Self::Embed { .. } => [None; 3],
            Self::Linear { x, .. }
            | Self::RmsNorm { x, .. }
            | Self::Rope { x, .. }
            | Self::Scale { x, .. }
            | Self::ScaleBy { x, .. }
            | Self::Columns { x, .. }
            | Self::LastRow { x }
            | Self::MeanRows { x, .. }
            | Self::SoftCap { x, .. } => [Some(x), None, None],
            Self::Attend { q, to: Attended::Rows { k, v }, .. } => [Some(q), Some(k), Some(v)],
            Self::Attend { q, to: Attended::Cache { stored, .. }, .. } => [Some(q), Some(stored), None],
            Self::Route { logits, .. } => [Some(logits), None, None],
            Self::StoreKv { k, v, .. } => [Some(k), Some(v), None],
            Self::Add { a, b } | Self::Mul { a, b } => [Some(a), Some(b), None],
            Self::GeluMul { gate, up } => [Some(gate), Some(up), None],
            Self::ExpertLinear { x, routing, .. } | Self::Combine { x, routing, .. } => {
                [Some(x), Some(routing), None]
            }
        };
        [a, b, c].into_iter().flatten()
    }

    /// The weight it reads.
    pub fn weight(&self) -> Option<Weight> {
        match *self {
            Self::Embed { table, .. } => Some(table),
            Self::Linear { weight, .. }
            | Self::ScaleBy { weight, .. }
            | Self::ExpertLinear { weight, .. } => Some(weight),
            Self::RmsNorm { weight, .. } | Self::Combine { scale: weight, .. } => weight,
            Self::Rope { rope, .. } => rope.factors,
            _ => None,
        }
    }
}
