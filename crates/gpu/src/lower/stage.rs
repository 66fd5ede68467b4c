//! What a plan consists of before kernels are chosen: operations, alone or fused.

use rullama_graph::{AttendShape, Cache, Rope, Rows, Value, Weight};

/// A root-mean-square norm over the whole width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Norm {
    pub(crate) weight: Weight,
    pub(crate) eps: f32,
}

/// `(base + norm(branch)) · scale`: how a branch returns to the residual stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sum {
    pub(crate) base: Value,
    pub(crate) branch: Value,
    pub(crate) branch_norm: Norm,
    pub(crate) scale: Option<Weight>,
}

/// What a linear operation reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Input {
    /// A value as it is.
    Value(Value),
    /// What its reader makes from a value or a sum on the way.
    Made {
        from: From,
        /// The sum, where others read it later.
        keep: Option<Value>,
        norm: Option<Norm>,
        /// The normed input times this.
        factor: f32,
    },
}

/// What an input is made from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum From {
    Value(Value),
    Sum(Sum),
}

/// What is done with a product before it is stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Epilogue {
    Store,
    SoftCap(f32),
    /// `gelu(gate) · up`, where up is another weight, with its rows so far after the gate's.
    GeluPair {
        up: Weight,
    },
    /// `gelu(product) · other`, from a column of another value on.
    GeluOther {
        other: Value,
        first: u32,
    },
}

/// One or more products with the same input.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Linear {
    pub(crate) input: Input,
    /// Weights whose rows follow each other, with what each of them makes.
    pub(crate) outputs: Vec<(Weight, Value)>,
    pub(crate) routing: Option<Value>,
    pub(crate) epilogue: Epilogue,
    pub(crate) rows: Rows,
    /// Where products of other stages lie beside these in one buffer.
    pub(crate) beside: Option<Beside>,
}

/// A place in the buffer that several stages fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Beside {
    /// A product of the stage that comes first.
    pub(crate) first: Value,
    /// The first column of this stage's own.
    pub(crate) column: u32,
    /// Columns of all.
    pub(crate) width: u32,
}

/// Heads as they come from their product: still to be normed, and turned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RawHeads {
    pub(crate) value: Value,
    pub(crate) norm: Option<Weight>,
    pub(crate) eps: f32,
}

/// Attention, from the products of queries, keys and values on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Attention {
    pub(crate) q: RawHeads,
    /// Keys and values, where the layer has its own.
    pub(crate) kv: Option<[RawHeads; 2]>,
    pub(crate) rope: Rope,
    pub(crate) cache: Cache,
    pub(crate) shape: AttendShape,
    pub(crate) out: Value,
    pub(crate) rows: Rows,
}

/// The embeddings of all layers: `(norm(projected · before) + table row · scale) · by`.
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

/// One step of a plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Stage {
    /// An operation as it is.
    Plain(usize),
    /// A sum, with its norm if that is wanted at once.
    Residual {
        sum: Sum,
        out: Value,
        normed: Option<(Norm, Value)>,
    },
    Linear(Linear),
    Attention(Attention),
    PerLayer(PerLayer),
}
