// swish: a · sigmoid(constant · a): silu with a constant of 1, and a coarse gelu with another. The argument of exp is
// bounded, because some GPUs overflow; NaN if a is infinite or NaN.

fn apply(a: f32, b: f32, constant: f32, other: f32) -> f32 {
    return if_finite(a, a / (1.0 + exp(clamp(-constant * a, -80.0, 80.0))));
}
