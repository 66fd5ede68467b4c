// convolve_columns: each column convolved over its row and the rows before it; before the first row is zero.
//
// Work split   one invocation computes one column (x) of one row (y).
// Reads        x [rows, width], vectors: for each column as many values as rows are seen        Writes   y, as x
// Constants    LANES

struct Params { width: u32, seen: u32, weight_at: u32 }

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> vectors: array<f32>;
@group(1) @binding(2) var<storage, read> x: array<f32>;
@group(1) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let column = workgroup.x * LANES + lane;
    if column >= params.width { return; }
    // The last value is for the row itself.
    let own = params.weight_at + (column + 1u) * params.seen - 1u;
    var sum = 0.0;
    for (var back = 0u; back < min(params.seen, workgroup.y + 1u); back++) {
        sum += vectors[own - back] * x[(workgroup.y - back) * params.width + column];
    }
    y[workgroup.y * params.width + column] = sum;
}
