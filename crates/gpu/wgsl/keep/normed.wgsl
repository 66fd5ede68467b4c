// normed: the norm of the sum is wanted as well.

@group(1) @binding(5) var<storage, read_write> normed: array<vec4<f32>>;

const NORMED: bool = true;

fn finish(at: u32, value: vec4<f32>) { normed[at] = value; }
