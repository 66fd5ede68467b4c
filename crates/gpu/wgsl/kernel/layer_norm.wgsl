// layer_norm: (x - mean(x)) / sqrt(variance(x) + eps) over groups of columns, times a weight.
//
// Work split   one workgroup norms one group (x) of one row (y). It walks along the group three times: for the mean, for
//              the variance, which is exact only around the mean, and for the result.
// Reads        x [rows, groups · group], vectors        Writes   y, as x
// Constants    LANES

struct Params { group: u32, groups: u32, weight_at: u32, eps: f32 }

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> vectors: array<f32>;
@group(1) @binding(2) var<storage, read> x: array<f32>;
@group(1) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = (workgroup.y * params.groups + workgroup.x) * params.group;
    var sum = 0.0;
    for (var i = lane; i < params.group; i += LANES) { sum += x[at + i]; }
    let mean = workgroup_sum(sum, lane) / f32(params.group);
    var squares = 0.0;
    for (var i = lane; i < params.group; i += LANES) {
        let apart = x[at + i] - mean;
        squares += apart * apart;
    }
    let scale = inverse_root(workgroup_sum(squares, lane) / f32(params.group) + params.eps);
    for (var i = lane; i < params.group; i += LANES) {
        y[at + i] = (x[at + i] - mean) * scale * vectors[params.weight_at + i];
    }
}
