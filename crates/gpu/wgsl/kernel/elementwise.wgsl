// elementwise: y = apply(a, b), column by column.
//
// Work split   one invocation computes one column (x) of one row (y).
// Reads        a [rows, width], b likewise, or some values that are repeated        Writes   y [rows, width]
// Slots        op: apply
// Constants    LANES

struct Params {
    width: u32,
    b_at: u32,
    b_period: u32,    // values of b after which they are repeated
    constant: f32,
    other: f32,
}

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> a: array<f32>;
@group(1) @binding(2) var<storage, read> b: array<f32>;
@group(1) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let column = workgroup.x * LANES + lane;
    if column >= params.width { return; }
    let at = workgroup.y * params.width + column;
    y[at] = apply(a[at], b[params.b_at + at % params.b_period], params.constant, params.other);
}
