// rope: rotates columns j and j + half of each head by an angle that depends on the row's position.
//
// Work split   one invocation rotates one pair (x) of one row (y).
// Reads        x [rows, heads · 2 · half], angles [step rows, half] as (cos, sin)        Writes   y, as x
// Constants    LANES

struct Params { half: u32, pairs: u32, last: u32 }

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> angles: array<vec2<f32>>;
@group(1) @binding(2) var<storage, read> x: array<f32>;
@group(1) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = workgroup.x * LANES + lane;
    if index >= params.pairs { return; }
    let pair = index % params.half;
    let at = workgroup.y * 2u * params.pairs + 2u * (index - pair) + pair;
    // Of the last row alone, the position is that of the step's last row.
    let row = select(workgroup.y, step.rows - 1u, params.last == 1u);
    let turn = angles[row * params.half + pair];
    let a = x[at];
    let b = x[at + params.half];
    y[at] = a * turn.x - b * turn.y;
    y[at + params.half] = a * turn.y + b * turn.x;
}
