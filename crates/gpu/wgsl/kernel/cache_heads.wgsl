// cache_heads: normalises and rotates the keys and normalises the values of a step's rows, and stores both.
//
// Work split   one workgroup has one kv head (x) of one row (y), a team for its key and one for its value.
// Reads        k, v (raw, from k_at and v_at on, rows k_stride and v_stride floats apart, all multiples of four),
//              vectors (weights of norms), angles [step rows, HEAD_WIDTH / 2] as (cos, sin)
// Writes       keys, values [slots, capacity, kv_heads] of heads, each row at its position modulo the capacity
// Slots        cache: Eight (of reading), prepare, packed     team
// Constants    LANES, TEAM (half of LANES), HEAD_WIDTH, HEAD_VECTORS (of a head in the cache)

struct Params {
    kv_heads: u32,
    capacity: u32,
    k_at: u32,
    k_stride: u32,
    v_at: u32,
    v_stride: u32,
    k_weight: u32,    // first float in `vectors`, or NO_WEIGHT
    eps: f32,
}

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> k: array<vec4<f32>>;
@group(1) @binding(2) var<storage, read> vectors: array<f32>;
@group(1) @binding(3) var<storage, read> angles: array<vec4<f32>>;
@group(1) @binding(4) var<storage, read> v: array<vec4<f32>>;
@group(1) @binding(6) var<storage, read_write> keys: array<vec4<u32>>;
@group(1) @binding(7) var<storage, read_write> values: array<vec4<u32>>;

const_assert LANES == 2u * TEAM;

var<workgroup> rows: array<vec4<f32>, 2u * QUADS>;

fn fresh(row: u32, quad: u32) -> vec4<f32> { return rows[row * QUADS + quad]; }

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let is_value = lane >= TEAM;
    let at = select(params.k_at + workgroup.y * params.k_stride, params.v_at + workgroup.y * params.v_stride, is_value);
    let x_at = at / 4u + workgroup.x * QUADS;
    var a: array<vec4<f32>, TEAM_QUADS>;
    var b: array<vec4<f32>, TEAM_QUADS>;
    var square = 0.0;
    for (var i = 0u; i < TEAM_QUADS; i++) {
        let quad = i * TEAM + lane % TEAM;
        if quad < QUADS / 2u {
            if is_value {
                a[i] = v[x_at + quad];
                b[i] = v[x_at + quad + QUADS / 2u];
            } else {
                a[i] = k[x_at + quad];
                b[i] = k[x_at + quad + QUADS / 2u];
            }
            square += dot(a[i], a[i]) + dot(b[i], b[i]);
        }
    }
    let scale = team_scale(square, lane, params.eps);
    for (var i = 0u; i < TEAM_QUADS; i++) {
        let quad = i * TEAM + lane % TEAM;
        if quad < QUADS / 2u {
            var low = a[i] * scale;
            var high = b[i] * scale;
            if !is_value {
                let turn = turn4(workgroup.y, quad);
                let x = low * weight4(params.k_weight, quad);
                let y = high * weight4(params.k_weight, quad + QUADS / 2u);
                low = x * turn[0] - y * turn[1];
                high = x * turn[1] + y * turn[0];
            }
            let row = lane / TEAM;
            rows[row * QUADS + quad] = low;
            rows[row * QUADS + quad + QUADS / 2u] = high;
        }
    }
    workgroupBarrier();
    prepare(lane);
    let cache_row = slot_base(workgroup.y, params.capacity) + step.row[workgroup.y].position % params.capacity;
    let cache_at = (cache_row * params.kv_heads + workgroup.x) * HEAD_VECTORS;
    for (var vector = lane; vector < HEAD_VECTORS; vector += LANES) {
        keys[cache_at + vector] = packed(0u, vector);
        values[cache_at + vector] = packed(1u, vector);
    }
}
