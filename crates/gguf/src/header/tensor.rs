//! One entry of the tensor directory.

use std::{fmt, ops::Range};

use super::text;
use crate::{
    Format,
    value::{string_at, u32_at, u64_at},
};

/// The extents of a tensor, fastest varying first: a matrix of `n` rows of `k` values is `[k, n]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    dims: [u64; 4],
    rank: u8,
}

impl Shape {
    /// The shape with these extents, at most four.
    pub fn new(dims: &[u64]) -> Option<Self> {
        let mut all = [1; 4];
        all.get_mut(..dims.len())?.copy_from_slice(dims);
        Some(Self { dims: all, rank: dims.len() as u8 })
    }

    /// The extents as written in the file.
    pub fn dims(&self) -> &[u64] {
        &self.dims[..usize::from(self.rank)]
    }

    /// Values in one row.
    pub fn row_len(&self) -> u64 {
        self.dims[0]
    }

    /// Number of rows, all further extents multiplied.
    pub fn rows(&self) -> u64 {
        self.dims[1..].iter().product()
    }

    /// Number of values. Cannot overflow: a shape too large to count is refused.
    pub fn values(&self) -> u64 {
        self.dims.iter().product()
    }

    /// Number of values, or nothing where they cannot be counted as a positive `i64`.
    pub(crate) fn checked_values(&self) -> Option<u64> {
        // Multiplied without zeros first: [0, 2^60, 2^60] is as malformed as [1, 2^60, 2^60].
        let product = self.dims.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim.max(1)))?;
        (product < 1 << 63).then(|| self.values())
    }

    /// Bytes of a tensor of this shape, or nothing where its rows are not whole blocks of `format`, or its values or
    /// bytes cannot be counted as a positive `i64`.
    pub(crate) fn bytes(&self, format: Format) -> Option<u64> {
        self.checked_values()?;
        let bytes = format.row_bytes(self.row_len())?.checked_mul(self.rows())?;
        (bytes < 1 << 63).then_some(bytes)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.dims(), f)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A tensor as the file lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tensor<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its extents.
    pub shape: Shape,
    /// How its values are stored.
    pub format: Format,
    /// Where its data begins, counted from the start of the data section.
    pub offset: u64,
    /// Size of its data.
    pub bytes: u64,
}

impl<'a> Tensor<'a> {
    /// Bytes of one row.
    pub fn row_bytes(&self) -> u64 {
        self.format.row_bytes(self.shape.row_len()).expect("checked while parsing")
    }

    /// Its bytes within the data section.
    pub fn data_range(&self) -> Range<u64> {
        self.offset..self.offset + self.bytes
    }

    /// The tensor whose entry begins at `at` of a checked header.
    pub(super) fn view(header: &'a [u8], at: usize) -> Self {
        let (name, rank_at) = string_at(header, at);
        let rank = u32_at(header, rank_at) as usize;
        let mut dims = [1; 4];
        for (index, dim) in dims[..rank].iter_mut().enumerate() {
            *dim = u64_at(header, rank_at + 4 + 8 * index);
        }
        let shape = Shape { dims, rank: rank as u8 };
        let format_at = rank_at + 4 + 8 * rank;
        let format = Format::from_id(u32_at(header, format_at)).expect("checked while parsing");
        Self {
            name: text(name),
            shape,
            format,
            offset: u64_at(header, format_at + 4),
            bytes: shape.bytes(format).expect("checked while parsing"),
        }
    }
}
