//! Handles to what a graph is made of, and what is known of inputs, weights and caches.

use crate::Shape;

/// A value that an operation produces. Values are numbered in the order in which they are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub(crate) u32);

impl Value {
    /// Its number.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An input of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Input(pub(crate) u32);

impl Input {
    /// Its number.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a graph knows of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputInfo {
    /// The name it is given by.
    pub name: String,
    /// Its rows and columns.
    pub shape: Shape,
}

/// A weight of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Weight(pub(crate) u32);

impl Weight {
    /// Its number.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The keys and values that one layer keeps of each token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cache(pub(crate) u32);

impl Cache {
    /// Its number.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A place where an adapter may be attached: one for each linear operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AdapterPoint(pub(crate) u32);

impl AdapterPoint {
    /// Its number.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a graph knows of a weight. How it is stored is the business of whoever reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightInfo {
    /// The tensor that holds it.
    pub tensor: String,
    /// Columns: what a row of it is multiplied with.
    pub width: u32,
    /// Rows: what it produces. A vector has one.
    pub rows: u32,
    /// How many matrices it has, one after another: experts.
    pub matrices: u32,
    /// Which row of each of the tensor's matrices is its first. Two weights may share a tensor.
    pub first_row: u32,
    /// Rows of each of the tensor's matrices.
    pub tensor_rows: u32,
    /// Bytes it takes as it is stored.
    pub bytes: u64,
    /// A weight of one value that all of its values are multiplied with: some formats keep one apart.
    pub scale: Option<Weight>,
}

impl WeightInfo {
    /// A vector of `width` values.
    pub fn vector(tensor: impl Into<String>, width: u32) -> Self {
        Self::matrix(tensor, width, 1)
    }

    /// A matrix of `rows` rows of `width` values.
    pub fn matrix(tensor: impl Into<String>, width: u32, rows: u32) -> Self {
        let tensor = tensor.into();
        Self { tensor, width, rows, matrices: 1, first_row: 0, tensor_rows: rows, bytes: 0, scale: None }
    }

    /// One such matrix for each of `matrices` experts.
    pub fn experts(mut self, matrices: u32) -> Self {
        self.matrices = matrices;
        self
    }

    /// Takes only the rows from `first_row` on of matrices that have `tensor_rows`.
    pub fn part_of(mut self, first_row: u32, tensor_rows: u32) -> Self {
        assert!(first_row + self.rows <= tensor_rows, "rows beyond the end of `{}`", self.tensor);
        (self.first_row, self.tensor_rows) = (first_row, tensor_rows);
        self
    }

    /// Multiplies all of its values with a weight of one value.
    pub fn scaled(mut self, scale: Option<Weight>) -> Self {
        self.scale = scale;
        self
    }

    /// Says how many bytes it takes.
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }
}

/// What a graph knows of a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheInfo {
    /// The layer that fills it.
    pub layer: u32,
    /// Heads of its keys and of its values.
    pub kv_heads: u32,
    /// Columns of a head.
    pub head_width: u32,
    /// How far back anything looks; without it, to the beginning.
    pub window: Option<u32>,
}

impl CacheInfo {
    /// Columns of a row of keys, and of a row of values.
    pub fn width(&self) -> u32 {
        self.kv_heads * self.head_width
    }
}
