// gelu_other: the product is a gate for something that is there already.

@group(1) @binding(9) var<storage, read> other: array<f32>;

const PAIRED: bool = false;

fn finish(row: u32, output: u32, value: f32, second: f32) -> f32 {
    return gelu(value) * other[params.other_at + row * params.other_stride + output];
}
