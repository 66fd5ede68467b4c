// soft_cap: the product, bounded smoothly. The argument of tanh is bounded first, because some GPUs overflow;
// a product that is infinite or NaN gives NaN, because a bounded logit would hide it.

const PAIRED: bool = false;

fn finish(row: u32, output: u32, value: f32, second: f32) -> f32 {
    return if_finite(value, params.cap * tanh(clamp(value / params.cap, -15.0, 15.0)));
}
