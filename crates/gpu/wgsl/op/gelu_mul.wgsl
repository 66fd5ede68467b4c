// gelu_mul: gelu(a) · b, with the tanh form of gelu. Its argument is bounded, because some GPUs overflow.

fn apply(a: f32, b: f32, constant: f32) -> f32 {
    let inner = clamp(0.7978845608 * a * (1.0 + 0.044715 * a * a), -15.0, 15.0);
    return 0.5 * a * (1.0 + tanh(inner)) * b;
}
