//! Rows of numbers.

/// A value while it is computed: rows of f32.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Matrix {
    values: Vec<f32>,
    width: usize,
}

impl Matrix {
    /// `rows` rows of `width` zeros.
    pub fn zeros(rows: usize, width: usize) -> Self {
        Self { values: vec![0.0; rows * width], width }
    }

    /// Rows of `width` values, one after another.
    pub fn new(values: Vec<f32>, width: usize) -> Self {
        assert!(
            width > 0 && values.len().is_multiple_of(width),
            "{} values in rows of {width}",
            values.len()
        );
        Self { values, width }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.values.len().checked_div(self.width).unwrap_or(0)
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// All values, row by row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// All values, row by row.
    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// One row.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.width..][..self.width]
    }

    /// One row.
    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.values[row * self.width..][..self.width]
    }

    /// The values themselves.
    pub fn into_values(self) -> Vec<f32> {
        self.values
    }
}
