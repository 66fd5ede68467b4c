// attend_tile: softmax attention of rows over the cache of their one conversation, or over each other, with a scale of one.
//
// Work split   one workgroup answers PAIRS pairs of a row and a head (x) that share one kv head (y). It walks along what
//              its rows see in tiles of KEYS keys. Scores: queries and keys pass through workgroup memory, CHUNK columns
//              at a time, and a lane scores four pairs (a bunch) with two keys. Values: a lane has eight columns of one
//              bunch or two, and reads each value from the cache, since neighbours read the same. Tiles that no row
//              sees are not visited; the workgroups with most to see start first.
// Reads        q [rows, heads · HEAD_WIDTH], normalised and rotated; keys, values [slots, capacity, kv_heads] of heads
// Writes       y, as q
// Slots        cache: Eight, key8, value8, low4, high4; seen: first_seen, end_seen, first_cache_row
// Constants    HEAD_WIDTH, HEAD_VECTORS (of a head in the cache)

struct Params {
    heads: u32,
    kv_heads: u32,
    window: u32,      // zero: everything before
    capacity: u32,    // rows of the cache
    last: u32,        // one: q and y are the step's last row alone
}

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(1) @binding(2) var<storage, read> keys: array<vec4<u32>>;
@group(1) @binding(3) var<storage, read> values: array<vec4<u32>>;
@group(1) @binding(4) var<storage, read_write> y: array<vec4<f32>>;

const NOTHING: f32 = -3.0e38;
const LANES: u32 = 256u;
const PAIRS: u32 = 32u;
const KEYS: u32 = 64u;
const QUADS: u32 = HEAD_WIDTH / 4u;
const EIGHTHS: u32 = HEAD_WIDTH / 8u;

// Columns that pass through workgroup memory at once, in quads. Rows of them are one quad longer, so that neighbouring
// rows lie in different banks.
const CHUNK: u32 = 8u;
const STRIDE: u32 = CHUNK + 1u;
const CHUNKS: u32 = (QUADS + CHUNK - 1u) / CHUNK;

// Pair i of a bunch is i · BUNCHES further on, so that neighbouring bunches are neighbouring pairs.
const BUNCHES: u32 = PAIRS / 4u;
const OWN_BUNCHES: u32 = (EIGHTHS + 31u) / 32u;
const GROUPS: u32 = BUNCHES / OWN_BUNCHES;

const_assert HEAD_WIDTH % 8u == 0u;
const_assert OWN_BUNCHES <= 2u;
const_assert GROUPS * EIGHTHS <= LANES;

// Queries and keys, as they pass; then the largest scores that each lane found, and the chances of the tile.
const KEYS_AT: u32 = PAIRS * STRIDE;
const LARGEST_STRIDE: u32 = KEYS / 2u + 1u;
const CHANCES_AT: u32 = BUNCHES * LARGEST_STRIDE;
var<workgroup> pool: array<vec4<f32>, (PAIRS + KEYS) * STRIDE>;
var<workgroup> shrinks: array<vec4<f32>, BUNCHES>;

const_assert CHANCES_AT + BUNCHES * KEYS <= (PAIRS + KEYS) * STRIDE;

// A key's head in the cache: `first` is the row of the tile's first key.
fn head_at(first: u32, key: u32, kv_head: u32) -> u32 {
    let row = first + key;
    let cache_row = first_cache_row(0u) + select(row, row - params.capacity, row >= params.capacity);
    return (cache_row * params.kv_heads + kv_head) * HEAD_VECTORS;
}

// What a lane brings of a chunk's keys.
fn bring_key(tile: u32, end: u32, chunk: u32, kv_head: u32, lane: u32) -> Eight {
    var eight: Eight;
    let key = lane / (CHUNK / 2u);
    let eighth = chunk * (CHUNK / 2u) + lane % (CHUNK / 2u);
    if tile + key < end && eighth < EIGHTHS {
        eight = key8(head_at(tile % params.capacity, key, kv_head), eighth);
    }
    return eight;
}

// What a lane brings of a chunk's queries.
fn bring_query(at: u32, is_asked: bool, chunk: u32, lane: u32) -> vec4<f32> {
    let quad = chunk * CHUNK + lane % CHUNK;
    if !is_asked || quad >= QUADS { return vec4<f32>(); }
    return q[at + quad];
}

// sum + a · b as a chain of multiply-adds.
fn add_dot(sum: f32, a: vec4<f32>, b: vec4<f32>) -> f32 {
    return sum + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

@compute @workgroup_size(LANES)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let kv_head = workgroup.y;
    let served = params.heads / params.kv_heads;
    let rows = select(step.rows, 1u, params.last == 1u);
    let skipped = step.rows - rows;
    let pairs = rows * served;
    let first_pair = (workgroups.x - 1u - workgroup.x) * PAIRS;
    // A grid may be larger than it need be.
    if first_pair >= pairs { return; }
    let first_row = first_pair / served;
    let last_row = (min(first_pair + PAIRS, pairs) - 1u) / served;
    // Neither the first nor the last key that a row sees comes before that of an earlier row.
    let begin = first_seen(skipped + first_row);
    let end = end_seen(skipped + last_row);

    // Where the query is that this lane brings.
    let brought = first_pair + lane / CHUNK;
    let is_asked = brought < pairs;
    let brought_at = (brought / served * params.heads + kv_head * served + brought % served) * QUADS;

    // What this lane scores: a bunch, and a key in each half of a tile.
    let bunch = lane / 32u % 2u * 4u + lane / 8u % 4u;
    let own_key = lane / 64u * 8u + lane % 8u;
    var from_position = vec4<u32>(1u);
    var to_position = vec4<u32>(0u);
    for (var i = 0u; i < 4u; i++) {
        let pair = first_pair + i * BUNCHES + bunch;
        if pair < pairs {
            let row = skipped + pair / served;
            from_position[i] = first_seen(row);
            to_position[i] = end_seen(row);
        }
    }

    // What this lane adds up.
    let group = lane / EIGHTHS;
    let eighth = lane % EIGHTHS;
    var low: array<vec4<f32>, 4u * OWN_BUNCHES>;
    var high: array<vec4<f32>, 4u * OWN_BUNCHES>;

    var most = vec4<f32>(NOTHING);
    var total = vec4<f32>();
    var next_key = bring_key(begin, end, 0u, kv_head, lane);
    var next_query = bring_query(brought_at, is_asked, 0u, lane);
    for (var tile = begin; tile < end; tile += KEYS) {
        var near = vec4<f32>();
        var far = vec4<f32>();
        for (var chunk = 0u; chunk < CHUNKS; chunk++) {
            pool[lane / CHUNK * STRIDE + lane % CHUNK] = next_query;
            let key_at = KEYS_AT + lane / (CHUNK / 2u) * STRIDE + lane % (CHUNK / 2u) * 2u;
            pool[key_at] = low4(next_key);
            pool[key_at + 1u] = high4(next_key);
            workgroupBarrier();

            // On the way while this chunk is scored; after the last, while values are added up.
            let is_last = chunk + 1u == CHUNKS;
            let next_chunk = select(chunk + 1u, 0u, is_last);
            next_key = bring_key(select(tile, tile + KEYS, is_last), end, next_chunk, kv_head, lane);
            next_query = bring_query(brought_at, is_asked, next_chunk, lane);

            // Summed up by chunks, since the error of a sum grows with its length, and scores are large.
            var near_here = vec4<f32>();
            var far_here = vec4<f32>();
            for (var i = 0u; i < CHUNK; i++) {
                let near_key = pool[KEYS_AT + own_key * STRIDE + i];
                let far_key = pool[KEYS_AT + (own_key + KEYS / 2u) * STRIDE + i];
                let query_0 = pool[bunch * STRIDE + i];
                let query_1 = pool[(bunch + BUNCHES) * STRIDE + i];
                let query_2 = pool[(bunch + 2u * BUNCHES) * STRIDE + i];
                let query_3 = pool[(bunch + 3u * BUNCHES) * STRIDE + i];
                near_here.x = add_dot(near_here.x, query_0, near_key);
                near_here.y = add_dot(near_here.y, query_1, near_key);
                near_here.z = add_dot(near_here.z, query_2, near_key);
                near_here.w = add_dot(near_here.w, query_3, near_key);
                far_here.x = add_dot(far_here.x, query_0, far_key);
                far_here.y = add_dot(far_here.y, query_1, far_key);
                far_here.z = add_dot(far_here.z, query_2, far_key);
                far_here.w = add_dot(far_here.w, query_3, far_key);
            }
            near += near_here;
            far += far_here;
            workgroupBarrier();
        }

        let near_position = vec4<u32>(tile + own_key);
        let far_position = near_position + KEYS / 2u;
        let near_seen = (near_position >= from_position) & (near_position < to_position);
        let far_seen = (far_position >= from_position) & (far_position < to_position);
        near = select(vec4<f32>(NOTHING), near, near_seen);
        far = select(vec4<f32>(NOTHING), far, far_seen);
        pool[bunch * LARGEST_STRIDE + own_key] = max(near, far);
        workgroupBarrier();
        var larger = most;
        for (var i = 0u; i < KEYS / 2u; i++) { larger = max(larger, pool[bunch * LARGEST_STRIDE + i]); }
        let shrink = exp(most - larger);
        // A pair that has seen nothing yet has no largest score.
        let near_chance = select(vec4<f32>(), exp(near - larger), near_seen);
        let far_chance = select(vec4<f32>(), exp(far - larger), far_seen);
        pool[CHANCES_AT + bunch * KEYS + own_key] = near_chance;
        pool[CHANCES_AT + bunch * KEYS + own_key + KEYS / 2u] = far_chance;
        total = total * shrink + near_chance + far_chance;
        most = larger;
        if own_key == 0u { shrinks[bunch] = shrink; }
        workgroupBarrier();

        if group < GROUPS {
            for (var j = 0u; j < OWN_BUNCHES; j++) {
                let by = shrinks[group + j * GROUPS];
                for (var i = 0u; i < 4u; i++) {
                    low[4u * j + i] *= by[i];
                    high[4u * j + i] *= by[i];
                }
            }
            let count = min(KEYS, end - tile);
            let first = tile % params.capacity;
            // Four at a time, so that four are on the way at once. Chances beyond the end are zero.
            for (var key = 0u; key < count; key += 4u) {
                var held: array<Eight, 4>;
                for (var k = 0u; k < 4u; k++) {
                    held[k] = value8(head_at(first, min(key + k, count - 1u), kv_head), eighth);
                }
                for (var k = 0u; k < 4u; k++) {
                    let value_low = low4(held[k]);
                    let value_high = high4(held[k]);
                    for (var j = 0u; j < OWN_BUNCHES; j++) {
                        let chance = pool[CHANCES_AT + (group + j * GROUPS) * KEYS + key + k];
                        for (var i = 0u; i < 4u; i++) {
                            low[4u * j + i] += chance[i] * value_low;
                            high[4u * j + i] += chance[i] * value_high;
                        }
                    }
                }
            }
        }
        workgroupBarrier();
    }

    pool[bunch * LARGEST_STRIDE + own_key] = total;
    workgroupBarrier();
    if group < GROUPS {
        for (var j = 0u; j < OWN_BUNCHES; j++) {
            let own_bunch = group + j * GROUPS;
            var totals = vec4<f32>();
            for (var i = 0u; i < KEYS / 2u; i++) { totals += pool[own_bunch * LARGEST_STRIDE + i]; }
            for (var i = 0u; i < 4u; i++) {
                let pair = first_pair + i * BUNCHES + own_bunch;
                if pair < pairs {
                    let at = (pair / served * params.heads + kv_head * served + pair % served) * QUADS + 2u * eighth;
                    y[at] = low[4u * j + i] / totals[i];
                    y[at + 1u] = high[4u * j + i] / totals[i];
                }
            }
        }
    }
}
