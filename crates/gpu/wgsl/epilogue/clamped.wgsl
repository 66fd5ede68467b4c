// clamped: the product, no less than a bound and no more than another. NaN if it is infinite or NaN, because a bounded number
// would hide it.

const PAIRED: bool = false;

fn finish(row: u32, output: u32, value: f32, second: f32) -> f32 {
    return if_finite(value, clamp(value, params.low, params.high));
}
