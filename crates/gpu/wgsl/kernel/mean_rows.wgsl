// mean_rows: the mean of each `group` neighbouring rows, of fewer at the end.
//
// Work split   one invocation computes one column (x) of one group (y).
// Reads        x [rows, width]        Writes   y [groups, width]
// Constants    LANES

struct Params { width: u32, group: u32, rows: u32 }

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> x: array<f32>;
@group(1) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let column = workgroup.x * LANES + lane;
    if column >= params.width { return; }
    let first = workgroup.y * params.group;
    let end = min(first + params.group, params.rows);
    var sum = 0.0;
    for (var row = first; row < end; row++) { sum += x[row * params.width + column]; }
    y[workgroup.y * params.width + column] = sum / f32(end - first);
}
