// rotate: turns columns j and j + half of each part of each head by angles that are given.
//
// Work split   one invocation turns one pair (x) of one row (y).
// Reads        x [rows, heads · head], turns [rows, head] as cosines, then sines, of each part        Writes   y, as x
// Constants    LANES

struct Params {
    half: u32,     // pairs of a part
    pairs: u32,    // pairs of a row
    head: u32,     // columns of a head
}

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> turns: array<f32>;
@group(1) @binding(2) var<storage, read> x: array<f32>;
@group(1) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = workgroup.x * LANES + lane;
    if index >= params.pairs { return; }
    let pair = index % params.half;
    let column = 2u * (index - pair) + pair;
    let turn_at = workgroup.y * params.head + column % params.head;
    let cosine = turns[turn_at];
    let sine = turns[turn_at + params.half];
    let at = workgroup.y * 2u * params.pairs + column;
    let a = x[at];
    let b = x[at + params.half];
    y[at] = a * cosine - b * sine;
    y[at + params.half] = a * sine + b * cosine;
}
