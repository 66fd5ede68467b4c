//! `activate`: a function of each value.

use rullama_graph::Activation;

use crate::{Matrix, elementwise::each};

/// NaN where `x` is infinite: some of these functions would make it an ordinary number, and nothing would show that it was none.
pub(crate) fn activate(x: &Matrix, with: Activation) -> Matrix {
    each(x, |x| if x.is_finite() { function(with, x) } else { f32::NAN })
}

fn function(with: Activation, x: f32) -> f32 {
    match with {
        Activation::Relu => x.max(0.0),
        Activation::Sigmoid => sigmoid(x),
        Activation::Silu => x * sigmoid(x),
        Activation::QuickGelu => x * sigmoid(1.702 * x),
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let near = |with, x: f32, y: f32| {
            let found = function(with, x);
            assert!((found - y).abs() < 1e-6, "{with:?} of {x} is {found}");
        };
        near(Activation::Relu, -2.0, 0.0);
        near(Activation::Relu, 2.0, 2.0);
        near(Activation::Sigmoid, 0.0, 0.5);
        near(Activation::Sigmoid, -1000.0, 0.0);
        near(Activation::Sigmoid, 1.0, 0.731_058_6);
        near(Activation::Silu, 1.0, 0.731_058_6);
        near(Activation::Silu, -2.0, -0.238_405_8);
        near(Activation::QuickGelu, 1.0, 0.845_795_8);
        near(Activation::QuickGelu, -1000.0, 0.0);
    }
}
