// rms_norm: x / sqrt(mean(x²) + eps) over groups of columns, times a weight.
//
// Work split   one workgroup norms one group (x) of one row (y).
// Reads        x [rows, groups · group], vectors        Writes   y, as x
// Constants    LANES, WEIGHTED

struct Params { group: u32, groups: u32, weight_at: u32, eps: f32 }

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> vectors: array<f32>;
@group(1) @binding(2) var<storage, read> x: array<f32>;
@group(1) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = (workgroup.y * params.groups + workgroup.x) * params.group;
    var squares = 0.0;
    for (var i = lane; i < params.group; i += LANES) {
        squares += x[at + i] * x[at + i];
    }
    let scale = inverse_root(workgroup_sum(squares, lane) / f32(params.group) + params.eps);
    for (var i = lane; i < params.group; i += LANES) {
        var value = x[at + i] * scale;
        if WEIGHTED == 1u { value *= vectors[params.weight_at + i]; }
        y[at + i] = value;
    }
}
