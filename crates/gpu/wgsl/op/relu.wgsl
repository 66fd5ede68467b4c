// relu: max(a, 0). NaN if a is infinite or NaN.

fn apply(a: f32, b: f32, constant: f32, other: f32) -> f32 { return if_finite(a, max(a, 0.0)); }
