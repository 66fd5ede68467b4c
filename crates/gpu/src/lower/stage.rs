//! Stages: single or fused operations, before kernels are chosen.

use rullama_graph::{AttendShape, Cache, Rope, Rows, Value, Weight};

/// A root-mean-square norm over the whole width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Norm {
    pub(crate) weight: Weight,
    pub(crate) eps: f32,
}

/// `(base + norm(branch)) · scale`: a branch is added to the residual stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sum {
    pub(crate) base: Value,
    pub(crate) branch: Value,
    pub(crate) branch_norm: Norm,
    pub(crate) scale: Option<Weight>,
}

/// The input of a product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Input {
    /// A value as it is.
    Value(Value),
    /// Computed by the prologue of the product.
    Prologue {
        source: InputSource,
        /// The sum, if other operations read it too: the prologue stores it.
        keep: Option<Value>,
        norm: Option<Norm>,
        /// The normalised value is multiplied with this.
        factor: f32,
    },
}

/// What a prologue computes its input from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum InputSource {
    Value(Value),
    Sum(Sum),
}

/// What a kernel computes from a product before storing it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Epilogue {
    Store,
    SoftCap(f32),
    /// The product, between two bounds.
    Clamp {
        low: f32,
        high: f32,
    },
    /// `gelu(gate) · up`, where `up` is a second weight in the same packed tensor.
    GeluPair {
        up: Weight,
    },
    /// `gelu(product) · other`, with columns of another value from `first` on.
    GeluOther {
        other: Value,
        first: u32,
    },
}

/// One or more products with the same input.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Linear {
    pub(crate) input: Input,
    /// Weights with adjacent rows in one packed tensor, and the value that each computes.
    pub(crate) outputs: Vec<(Weight, Value)>,
    pub(crate) routing: Option<Value>,
    pub(crate) epilogue: Epilogue,
    pub(crate) rows: Rows,
    /// Set if several stages write columns of one buffer.
    pub(crate) columns: Option<ColumnRange>,
}

/// A range of columns of a buffer that several stages write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ColumnRange {
    /// A product of the first of these stages.
    pub(crate) first: Value,
    /// The first column of this stage.
    pub(crate) column: u32,
    /// Columns of all stages together.
    pub(crate) width: u32,
}

/// Heads as the product stored them, before norm and rotation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RawHeads {
    pub(crate) value: Value,
    pub(crate) norm: Option<Weight>,
    pub(crate) eps: f32,
}

/// Fused attention, which starts from the products of queries, keys and values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Attention {
    pub(crate) q: RawHeads,
    /// Keys and values, if the layer has its own.
    pub(crate) kv: Option<[RawHeads; 2]>,
    pub(crate) rope: Rope,
    pub(crate) cache: Cache,
    pub(crate) shape: AttendShape,
    pub(crate) out: Value,
    pub(crate) rows: Rows,
}

/// Per-layer embeddings: `(norm(projected · before) + table row · scale) · by`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PerLayer {
    pub(crate) projected: Value,
    pub(crate) before: f32,
    pub(crate) norm: Norm,
    pub(crate) group: u32,
    pub(crate) table: Weight,
    pub(crate) scale: f32,
    pub(crate) by: f32,
    pub(crate) out: Value,
}

/// One stage.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Stage {
    /// An unfused operation, by its index.
    Plain(usize),
    /// A residual sum, and its norm if later operations read it.
    Residual {
        sum: Sum,
        out: Value,
        normed: Option<(Norm, Value)>,
    },
    Linear(Linear),
    Attention(Attention),
    PerLayer(PerLayer),
}
