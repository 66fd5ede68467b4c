// clamp: a, no less than a constant and no more than another. NaN if a is infinite or NaN.

fn apply(a: f32, b: f32, constant: f32, other: f32) -> f32 { return if_finite(a, clamp(a, constant, other)); }
