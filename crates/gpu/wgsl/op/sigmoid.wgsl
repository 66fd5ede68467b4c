// sigmoid: 1 / (1 + e^(-a)). The argument of exp is bounded, because some GPUs overflow; NaN if a is infinite or NaN.

fn apply(a: f32, b: f32, constant: f32, other: f32) -> f32 {
    return if_finite(a, 1.0 / (1.0 + exp(clamp(-a, -80.0, 80.0))));
}
