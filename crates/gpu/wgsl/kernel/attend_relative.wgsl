// attend_relative: softmax attention of one head to the last rows, with scores of cap · tanh((q · k + q · d) / cap), where d is
// the row of `distances` for the distance of the key.
//
// Work split   one workgroup answers one head (x) of one row (y). A lane scores one key after another, each LANES keys
//              further; then each lane adds up columns of values.
// Reads        q, k, v [rows, heads · head_width], distances [distances, heads · head_width]        Writes   y, as q
// Constants    LANES, KEYS (the most keys that a row sees)

struct Params {
    heads: u32,
    head_width: u32,
    window: u32,       // at most KEYS
    distances: u32,    // rows of distances; farther keys have none
    cap: f32,
}

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> q: array<f32>;
@group(1) @binding(2) var<storage, read> k: array<f32>;
@group(1) @binding(3) var<storage, read_write> y: array<f32>;
@group(1) @binding(4) var<storage, read> v: array<f32>;
@group(1) @binding(5) var<storage, read> distances: array<f32>;

const NOTHING: f32 = -3.0e38;

var<workgroup> chances: array<f32, KEYS>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = workgroup.y;
    let width = params.heads * params.head_width;
    let column = workgroup.x * params.head_width;
    let query = row * width + column;
    // By distance: the row itself, then those before it.
    let seen = min(row + 1u, params.window);

    var most = NOTHING;
    for (var back = lane; back < seen; back += LANES) {
        let key = (row - back) * width + column;
        let near = back * width + column;
        var score = 0.0;
        for (var i = 0u; i < params.head_width; i++) {
            var part = k[key + i];
            if back < params.distances { part += distances[near + i]; }
            score += q[query + i] * part;
        }
        let capped = if_finite(score, params.cap * tanh(clamp(score / params.cap, -15.0, 15.0)));
        chances[back] = capped;
        most = max(most, capped);
    }
    most = workgroup_max(most, lane);
    var total = 0.0;
    for (var back = lane; back < seen; back += LANES) {
        let chance = exp(chances[back] - most);
        chances[back] = chance;
        total += chance;
    }
    total = workgroup_sum(total, lane);
    workgroupBarrier();
    for (var i = lane; i < params.head_width; i += LANES) {
        var sum = 0.0;
        for (var back = 0u; back < seen; back++) {
            sum += chances[back] * v[(row - back) * width + column + i];
        }
        y[query + i] = sum / total;
    }
}
