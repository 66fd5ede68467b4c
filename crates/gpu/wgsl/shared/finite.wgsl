// finite: keeps numbers that are infinite or not a number (NaN) visible in the results that depend on them.
//
// `clamp`, `max` and 1 / ∞ turn them into ordinary numbers, and WGSL allows a compiler to assume that there are none, so
// a comparison may be compiled away. Arithmetic with a zero that is not known before run time cannot be: ∞ · 0 and NaN · 0
// are NaN, which every later sum keeps. The sampler finds NaN by its bits, and the host refuses the step.

// Zero: a step has fewer than 2³¹ rows.
fn zero() -> f32 { return f32(step.rows >> 31u); }

// `result`, or NaN if `x`, which it was computed from, is infinite or NaN.
fn if_finite(x: f32, result: f32) -> f32 { return result + x * zero(); }

// 1 / sqrt(x), and NaN instead of zero if x is infinite: a mean of squares that overflows would erase its row.
fn inverse_root(x: f32) -> f32 { return if_finite(x, inverseSqrt(x)); }

// The magnitudes as bits, which are in the same order; infinity and NaN are above all others.
fn magnitude(x: vec4<f32>) -> vec4<u32> { return bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu); }
