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

/// A function of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activation {
    /// `max(x, 0)`.
    Relu,
    /// `1 / (1 + e^(−x))`.
    Sigmoid,
    /// `x · sigmoid(x)`.
    Silu,
    /// `x · sigmoid(1.702 · x)`: a coarse form of gelu.
    QuickGelu,
}

/// A convolution of three by three over time, which rows count, and over bands, which columns count: band by band, the
/// channels of a band side by side. It moves by two along both and takes what is beyond the edges to be zero, so that it
/// halves the rows and the bands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Convolution {
    /// Bands of the input.
    pub bands: u32,
    /// Channels of the input's bands.
    pub channels: u32,
    /// Channels of the result's bands.
    pub outputs: u32,
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
    /// `(x − mean(x)) / sqrt(variance(x) + eps) · weight` over groups of columns as long as the weight.
    LayerNorm {
        /// The input.
        x: Value,
        /// One factor for each column of a group.
        weight: Weight,
        /// Columns of a group.
        group: u32,
        /// Keeps the root away from zero.
        eps: f32,
    },
    /// Turns pairs of columns of each head by angles that are given: columns `j` and `j + part / 2` of each part of a head
    /// by the cosine in column `j` of the same part of `turns`, and the sine in its column `j + part / 2`.
    Rotate {
        /// The input.
        x: Value,
        /// Cosines and sines for the columns of one head, a row for each of `x`.
        turns: Value,
        /// Columns of a part of a head: a head has one for each axis along which rows are placed.
        part: u32,
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
    /// Softmax attention of each head to rows of the same step, with scores of `cap · tanh((q · k + q · d) / cap)`, where `d` is
    /// row `i` of `distances` for a key `i` rows back. Keys farther back than there are such rows have no `d`.
    AttendRelative {
        /// Queries.
        q: Value,
        /// Keys.
        k: Value,
        /// Values.
        v: Value,
        /// What is added to the key of each distance, nearest first.
        distances: Value,
        /// Heads and mask. Nothing ahead is seen.
        shape: AttendShape,
        /// The bound of scores.
        cap: f32,
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
    /// Groups of columns as long as a weight, times the weight: each column has a factor, or all have one.
    ScaleBy {
        /// The input.
        x: Value,
        /// The factors.
        weight: Weight,
    },
    /// Groups of columns as long as a weight, plus the weight.
    Bias {
        /// The input.
        x: Value,
        /// What is added.
        weight: Weight,
    },
    /// `min(max(x, low), high)`.
    Clamp {
        /// The input.
        x: Value,
        /// The lower bound.
        low: f32,
        /// The upper bound.
        high: f32,
    },
    /// A function of each value.
    Activate {
        /// The input.
        x: Value,
        /// The function.
        with: Activation,
    },
    /// A convolution over time and bands, which produces half of the rows and half of the bands: rows of one domain become rows of another.
    Convolve {
        /// The input.
        x: Value,
        /// `outputs × channels × 3 × 3` values, those of bands fastest varying, then those of time.
        weight: Weight,
        /// Its extents.
        shape: Convolution,
    },
    /// A convolution of each column over the rows up to this one, of which the last weights the row itself: rows before the
    /// first are zero.
    ConvolveColumns {
        /// The input.
        x: Value,
        /// As many values for each column as rows are seen.
        weight: Weight,
        /// How many.
        rows: u32,
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

impl Activation {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Relu => "relu",
            Self::Sigmoid => "sigmoid",
            Self::Silu => "silu",
            Self::QuickGelu => "quick_gelu",
        }
    }
}

impl Convolution {
    /// Bands of the result.
    pub fn bands_left(self) -> u32 {
        self.bands.div_ceil(2)
    }

    /// Columns of the input.
    pub fn width(self) -> u32 {
        self.bands * self.channels
    }

    /// Columns of the result.
    pub fn output_width(self) -> u32 {
        self.bands_left() * self.outputs
    }

    /// Values of the weight.
    pub fn weights(self) -> u32 {
        9 * self.channels * self.outputs
    }
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
            Self::LayerNorm { .. } => "layer_norm",
            Self::Rotate { .. } => "rotate",
            Self::Rope { .. } => "rope",
            Self::StoreKv { .. } => "store_kv",
            Self::Attend { .. } => "attend",
            Self::AttendRelative { .. } => "attend_relative",
            Self::Add { .. } => "add",
            Self::Mul { .. } => "mul",
            Self::Scale { .. } => "scale",
            Self::ScaleBy { .. } => "scale_by",
            Self::Bias { .. } => "bias",
            Self::Clamp { .. } => "clamp",
            Self::Activate { .. } => "activate",
            Self::Convolve { .. } => "convolve",
            Self::ConvolveColumns { .. } => "convolve_columns",
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
        let [a, b, c, d] = match *self {
            Self::AttendRelative { q, k, v, distances, .. } => [Some(q), Some(k), Some(v), Some(distances)],
            Self::Input { .. } | Self::Embed { .. } => [None; 4],
            Self::Linear { x, .. }
            | Self::RmsNorm { x, .. }
            | Self::LayerNorm { x, .. }
            | Self::Rope { x, .. }
            | Self::Scale { x, .. }
            | Self::ScaleBy { x, .. }
            | Self::Bias { x, .. }
            | Self::Clamp { x, .. }
            | Self::Activate { x, .. }
            | Self::Convolve { x, .. }
            | Self::ConvolveColumns { x, .. }
            | Self::Columns { x, .. }
            | Self::LastRow { x }
            | Self::MeanRows { x, .. }
            | Self::SoftCap { x, .. } => [Some(x), None, None, None],
            Self::Attend { q, to: Attended::Rows { k, v }, .. } => [Some(q), Some(k), Some(v), None],
            Self::Attend { q, to: Attended::Cache { stored, .. }, .. } => [Some(q), Some(stored), None, None],
            Self::Route { logits, .. } => [Some(logits), None, None, None],
            Self::StoreKv { k, v, .. } => [Some(k), Some(v), None, None],
            Self::Rotate { x, turns, .. } => [Some(x), Some(turns), None, None],
            Self::Add { a, b } | Self::Mul { a, b } => [Some(a), Some(b), None, None],
            Self::GeluMul { gate, up } => [Some(gate), Some(up), None, None],
            Self::ExpertLinear { x, routing, .. } | Self::Combine { x, routing, .. } => {
                [Some(x), Some(routing), None, None]
            }
        };
        [a, b, c, d].into_iter().flatten()
    }

    /// The weight it reads.
    pub fn weight(&self) -> Option<Weight> {
        match *self {
            Self::Embed { table, .. } => Some(table),
            Self::Linear { weight, .. }
            | Self::ScaleBy { weight, .. }
            | Self::Bias { weight, .. }
            | Self::LayerNorm { weight, .. }
            | Self::Convolve { weight, .. }
            | Self::ConvolveColumns { weight, .. }
            | Self::ExpertLinear { weight, .. } => Some(weight),
            Self::RmsNorm { weight, .. } | Self::Combine { scale: weight, .. } => weight,
            Self::Rope { rope, .. } => rope.factors,
            _ => None,
        }
    }
}
