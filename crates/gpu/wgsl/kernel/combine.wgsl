// combine: the sum of the experts' outputs, each times its routing weight and its own scale.
//
// Work split   one invocation sums one column (x) of one row (y).
// Reads        x [rows, used · width], routing [rows, 2 · used], vectors        Writes   y [rows, width]
// Constants    LANES, SCALED (whether each expert has a scale of its own)

struct Params { width: u32, used: u32, scale_at: u32 }

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> x: array<f32>;
@group(1) @binding(2) var<storage, read> vectors: array<f32>;
@group(1) @binding(3) var<storage, read_write> y: array<f32>;
@group(1) @binding(4) var<storage, read> routing: array<f32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let column = workgroup.x * LANES + lane;
    if column >= params.width { return; }
    let row = workgroup.y;
    var sum = 0.0;
    for (var slot = 0u; slot < params.used; slot++) {
        let expert = u32(routing[row * 2u * params.used + slot]);
        var weight = routing[row * 2u * params.used + params.used + slot];
        if SCALED == 1u { weight *= vectors[params.scale_at + expert]; }
        sum += weight * x[(row * params.used + slot) * params.width + column];
    }
    y[row * params.width + column] = sum;
}
