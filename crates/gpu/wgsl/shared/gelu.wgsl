// gelu: in its tanh form. The argument of tanh is bounded, because some GPUs overflow.

fn gelu(x: f32) -> f32 {
    let inner = clamp(0.7978845608 * x * (1.0 + 0.044715 * x * x), -15.0, 15.0);
    return 0.5 * x * (1.0 + tanh(inner));
}
