// soft_cap: a bounded smoothly by a constant. The argument of tanh is bounded first, because some GPUs overflow;
// NaN if a is infinite or NaN.

fn apply(a: f32, b: f32, constant: f32, other: f32) -> f32 {
    return if_finite(a, constant * tanh(clamp(a / constant, -15.0, 15.0)));
}
