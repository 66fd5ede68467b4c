// mul: a · b; also for a factor that is a weight.

fn apply(a: f32, b: f32, constant: f32, other: f32) -> f32 { return a * b; }
