// kept: others read the sum later.

@group(1) @binding(7) var<storage, read_write> kept: array<vec4<f32>>;

const KEPT: bool = true;

fn keep(four: u32, sum: vec4<f32>) { kept[four] = sum; }
