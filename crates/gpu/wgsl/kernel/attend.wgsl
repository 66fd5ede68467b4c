// attend: softmax attention of one head over a cache, or over rows of the same step, with a scale of one.
//
// Work split   one workgroup answers one head (x) of one row (y). It walks along the context in tiles of LANES keys: a
//              lane scores one key, then all lanes add the tile's values to what they have so far, which shrinks
//              whenever a larger score comes. Where there are more lanes than pairs of columns, several share a pair
//              and take turns at the keys; their sums are added up in the end.
// Reads        q [rows, heads · 2 · pairs], keys, values [slots, capacity, kv_heads] of heads        Writes   y, as q
// Slots        cache: load_key, load_value; seen: first_seen, end_seen, first_cache_row
// Constants    LANES, PAIRS (pairs of columns that a lane may have to add up); in q8 also HEAD_WIDTH, HEAD_VECTORS

struct Params {
    heads: u32,
    kv_heads: u32,
    pairs: u32,
    window: u32,    // zero: everything before
    last: u32,
    capacity: u32,
}

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> keys: array<u32>;
@group(1) @binding(2) var<storage, read> q: array<f32>;
@group(1) @binding(3) var<storage, read_write> y: array<f32>;
@group(1) @binding(4) var<storage, read> values: array<u32>;

const NOTHING: f32 = -3.0e38;

var<workgroup> chances: array<f32, LANES>;
var<workgroup> shares: array<vec2<f32>, LANES>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let head = workgroup.x;
    let row = select(workgroup.y, step.rows - 1u, params.last == 1u);
    let seen = end_seen(row);
    let first = first_seen(row);
    let base = first_cache_row(row);
    let query_at = 2u * (workgroup.y * params.heads + head) * params.pairs;
    let row_pairs = params.kv_heads * params.pairs;
    let column = head / (params.heads / params.kv_heads) * params.pairs;

    let slices = max(LANES / params.pairs, 1u);
    let own_pair = select(lane, lane % params.pairs, slices > 1u);
    let slice = select(0u, lane / params.pairs, slices > 1u);

    var most = NOTHING;
    var total = 0.0;
    var sums: array<vec2<f32>, PAIRS>;
    for (var tile = first; tile < seen; tile += LANES) {
        let key = tile + lane;
        var score = NOTHING;
        if key < seen {
            let key_at = (base + key % params.capacity) * row_pairs + column;
            score = 0.0;
            for (var pair = 0u; pair < params.pairs; pair++) {
                score += dot(load_key(key_at + pair), vec2<f32>(q[query_at + 2u * pair], q[query_at + 2u * pair + 1u]));
            }
        }
        let larger = max(most, workgroup_max(score, lane));
        let shrink = exp(most - larger);
        var chance = 0.0;
        if key < seen { chance = exp(score - larger); }
        chances[lane] = chance;
        total = total * shrink + workgroup_sum(chance, lane);
        most = larger;
        let keys_here = min(LANES, seen - tile);
        for (var i = 0u; i < PAIRS; i++) {
            let pair = own_pair + i * LANES;
            if pair < params.pairs && slice < slices {
                var sum = sums[i] * shrink;
                for (var k = slice; k < keys_here; k += slices) {
                    sum += chances[k] * load_value((base + (tile + k) % params.capacity) * row_pairs + column + pair);
                }
                sums[i] = sum;
            }
        }
        workgroupBarrier();
    }

    shares[lane] = sums[0];
    workgroupBarrier();
    for (var i = 0u; i < PAIRS; i++) {
        let pair = own_pair + i * LANES;
        if pair < params.pairs && slice == 0u {
            var sum = sums[i];
            for (var other = 1u; other < slices; other++) { sum += shares[lane + other * params.pairs]; }
            y[query_at + 2u * pair] = sum.x / total;
            y[query_at + 2u * pair + 1u] = sum.y / total;
        }
    }
}
