//! A mean with its standard deviation.

use std::fmt;

use serde::Serialize;

/// The mean and standard deviation of repeated measurements.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Statistics {
    pub(super) mean: f64,
    /// The sample standard deviation, with n − 1 in the denominator. 0 for a single measurement.
    pub(super) stddev: f64,
}

impl Statistics {
    /// The statistics of at least one value.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let stddev = if values.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        Self { mean, stddev }
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} ± {:.1}", self.mean, self.stddev)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_is_that_of_a_sample() {
        let found = Statistics::of([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].into_iter());
        assert_eq!(found.mean, 5.0);
        assert!((found.stddev - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(Statistics::of([3.0].into_iter()), Statistics { mean: 3.0, stddev: 0.0 });
    }
}
