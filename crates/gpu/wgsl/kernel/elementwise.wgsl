// elementwise: y = apply(a, b), column by column.
//
// Work split   one invocation computes EACH columns (x) of one row (y), LANES apart, so that several loads are in flight.
// Reads        a [rows, width], b likewise, or some values that are repeated        Writes   y [rows, width]
// Slots        op: apply
// Constants    LANES, EACH (1, 4)

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

// Columns beyond the last are computed with it and not stored.
fn value(row_at: u32, column: u32) -> f32 {
    let at = row_at + min(column, params.width - 1u);
    return apply(a[at], b[params.b_at + at % params.b_period], params.constant, params.other);
}

fn store(row_at: u32, column: u32, value: f32) {
    if column < params.width { y[row_at + column] = value; }
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = workgroup.x * (EACH * LANES) + lane;
    let row_at = workgroup.y * params.width;
    let p = value(row_at, first);
    if EACH == 1u {
        store(row_at, first, p);
        return;
    }
    let q = value(row_at, first + LANES);
    let r = value(row_at, first + 2u * LANES);
    let s = value(row_at, first + 3u * LANES);
    store(row_at, first, p);
    store(row_at, first + LANES, q);
    store(row_at, first + 2u * LANES, r);
    store(row_at, first + 3u * LANES, s);
}
