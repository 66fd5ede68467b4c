//! `gelu_mul`: `gelu(gate) · up`, with the tanh form of gelu.

use crate::{Matrix, elementwise::pairwise};

pub(crate) fn gelu_mul(gate: &Matrix, up: &Matrix) -> Matrix {
    pairwise(gate, up, |gate, up| gelu(gate) * up)
}

fn gelu(x: f32) -> f32 {
    const SQRT_2_OVER_PI: f32 = 0.797_884_6;
    0.5 * x * (1.0 + (SQRT_2_OVER_PI * x * (1.0 + 0.044_715 * x * x)).tanh())
}

#[cfg(test)]
mod tests {
    use super::gelu;

    #[test]
    fn known_values() {
        for (x, y) in [(0.0, 0.0), (1.0, 0.841_192), (-1.0, -0.158_808), (3.0, 2.996_363), (100.0, 100.0)] {
            assert!((gelu(x) - y).abs() < 1e-5, "gelu({x}) is {}", gelu(x));
        }
        assert_eq!(gelu(-1e30), 0.0);
    }
}
