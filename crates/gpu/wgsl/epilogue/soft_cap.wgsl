// soft_cap: the product, bounded smoothly. The argument of tanh is bounded first, because some GPUs overflow.

const PAIRED: bool = false;

fn finish(row: u32, output: u32, value: f32, second: f32) -> f32 {
    return params.cap * tanh(clamp(value / params.cap, -15.0, 15.0));
}
