// query_heads: normalises and rotates the query heads of a step's rows.
//
// Work split   one workgroup has LANES / TEAM heads (x) of one row (y), a team to each.
// Reads        q (raw, from q_at on, rows q_stride floats apart, both multiples of four), vectors (weights of norms),
//              angles [step rows, HEAD_WIDTH / 2] as (cos, sin)
// Writes       y [rows, heads · HEAD_WIDTH]
// Slots        team
// Constants    LANES, TEAM, HEAD_WIDTH

struct Params {
    heads: u32,
    q_at: u32,
    q_stride: u32,
    q_weight: u32,    // first float in `vectors`, or NO_WEIGHT
    last: u32,        // one: q is the step's last row alone
    eps: f32,
}

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(1) @binding(2) var<storage, read> vectors: array<f32>;
@group(1) @binding(3) var<storage, read> angles: array<vec4<f32>>;
@group(1) @binding(4) var<storage, read_write> y: array<vec4<f32>>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let head = workgroup.x * (LANES / TEAM) + lane / TEAM;
    let x_at = (params.q_at + workgroup.y * params.q_stride) / 4u + head * QUADS;
    let y_at = (workgroup.y * params.heads + head) * QUADS;
    let row = select(workgroup.y, step.rows - 1u, params.last == 1u);
    var a: array<vec4<f32>, TEAM_QUADS>;
    var b: array<vec4<f32>, TEAM_QUADS>;
    var square = 0.0;
    for (var i = 0u; i < TEAM_QUADS; i++) {
        let quad = i * TEAM + lane % TEAM;
        if quad < QUADS / 2u && head < params.heads {
            a[i] = q[x_at + quad];
            b[i] = q[x_at + quad + QUADS / 2u];
            square += dot(a[i], a[i]) + dot(b[i], b[i]);
        }
    }
    let scale = team_scale(square, lane, params.eps);
    for (var i = 0u; i < TEAM_QUADS; i++) {
        let quad = i * TEAM + lane % TEAM;
        if quad < QUADS / 2u && head < params.heads {
            let turn = turn4(row, quad);
            let low = a[i] * weight4(params.q_weight, quad) * scale;
            let high = b[i] * weight4(params.q_weight, quad + QUADS / 2u) * scale;
            y[y_at + quad] = low * turn[0] - high * turn[1];
            y[y_at + quad + QUADS / 2u] = low * turn[1] + high * turn[0];
        }
    }
}
