// gelu_mul: gelu(a) · b.

fn apply(a: f32, b: f32, constant: f32, other: f32) -> f32 { return gelu(a) * b; }
