// copy: some columns of all rows, or of the last row.
//
// Work split   one invocation copies one column (x) of one row (y).
// Reads        x [rows, x_width]        Writes   y [rows, width]
// Constants    LANES

struct Params { x_width: u32, first: u32, width: u32, last: u32 }

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> x: array<f32>;
@group(1) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let column = workgroup.x * LANES + lane;
    if column >= params.width { return; }
    let row = select(workgroup.y, step.rows - 1u, params.last == 1u);
    y[workgroup.y * params.width + column] = x[row * params.x_width + params.first + column];
}
