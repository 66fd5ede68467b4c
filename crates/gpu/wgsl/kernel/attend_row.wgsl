// attend_row: from the raw products of one row to its attention sums, in one dispatch: norms and turns the query heads
// and, where the layer owns its cache, the new key and value, stores these, and attends. The row is the step's last.
//
// Work split   one workgroup answers GROUP_HEADS heads of one kv head (x) over one share of the keys that the row sees (y),
//              from the newest back in tiles of TILE keys. PARTS lanes score a key, by eights of columns; a lane takes the
//              scores of a key together; then a lane adds up eight columns of every value in SLICES. The next tile's keys
//              and values are asked for before they are needed, and the first before the heads are normed.
// Reads        q, kv (raw, from q_at, k_at and v_at on, which are multiples of four), vectors (weights of norms),
//              turns [step rows, HEAD_WIDTH / 2] as (cos, sin), keys, values [capacity, kv_heads] of heads
// Writes       sums [splits, heads · HEAD_WIDTH], not divided; peaks [splits, heads] as (largest score, total);
//              a row of keys and values, at its position modulo the capacity
// Slots        cache: Eight, key8, value8, low4, high4     kv: OWN_ROWS, own_input, add_own     team, splits
// Constants    LANES, TEAM, TILE, HEAD_WIDTH, HEAD_VECTORS (of a head in the cache), GROUP_HEADS, SPLIT_KEYS, MOST_SPLITS

struct Params {
    heads: u32,
    kv_heads: u32,
    window: u32,      // zero: everything before
    capacity: u32,    // rows of the cache
    q_at: u32,        // first floats of the raw products
    k_at: u32,
    v_at: u32,
    q_weight: u32,    // first floats in `vectors`, or NO_WEIGHT
    k_weight: u32,
    eps: f32,
}

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(1) @binding(2) var<storage, read> vectors: array<f32>;
@group(1) @binding(3) var<storage, read> turns: array<vec4<f32>>;
@group(1) @binding(4) var<storage, read_write> sums: array<vec4<f32>>;
@group(1) @binding(5) var<storage, read_write> peaks: array<vec2<f32>>;

const NOTHING: f32 = -3.0e38;
const EIGHTHS: u32 = HEAD_WIDTH / 8u;
const PARTS: u32 = LANES / TILE;
const KEY_LOADS: u32 = (EIGHTHS + PARTS - 1u) / PARTS;
const SLICES: u32 = LANES / EIGHTHS;
const VALUE_LOADS: u32 = (TILE + SLICES - 1u) / SLICES;

// Scores of up to four heads travel as one vector, and each head has a team.
const_assert GROUP_HEADS <= 4u;
const_assert GROUP_HEADS + OWN_ROWS <= LANES / TEAM;
const_assert GROUP_HEADS * QUADS <= 2u * LANES;
const_assert EIGHTHS <= LANES;

// The query heads, the low and the high halves of eights apart so that neighbouring lanes read neighbouring vectors;
// in the end the sums of a head, a slice after another.
var<workgroup> pool: array<vec4<f32>, 2u * LANES>;
// The new row; then each lane's part of its key's scores.
var<workgroup> scratch: array<vec4<f32>, LANES>;
var<workgroup> scores: array<vec4<f32>, TILE>;
var<workgroup> chances: array<vec4<f32>, TILE>;
var<workgroup> shrink_of_tile: vec4<f32>;
var<workgroup> most_of_tile: vec4<f32>;

// A share of the keys, counted from its newest back.
struct Share {
    newest: u32,    // row of the cache
    first: u32,     // zero, or one where the newest is not in the cache yet
    count: u32,
    kv_head: u32,
}

fn head_at(share: Share, key: u32) -> u32 {
    let row = share.newest + select(params.capacity, 0u, key <= share.newest) - key;
    return (row * params.kv_heads + share.kv_head) * HEAD_VECTORS;
}

fn load_keys(held: ptr<function, array<Eight, KEY_LOADS>>, share: Share, tile: u32, lane: u32) {
    let key = tile + lane / PARTS;
    if key >= share.first && key < share.count {
        let at = head_at(share, key);
        for (var i = 0u; i < KEY_LOADS; i++) {
            let eighth = i * PARTS + lane % PARTS;
            if eighth < EIGHTHS { (*held)[i] = key8(at, eighth); }
        }
    }
}

fn load_values(held: ptr<function, array<Eight, VALUE_LOADS>>, share: Share, tile: u32, lane: u32) {
    let slice = lane / EIGHTHS;
    for (var i = 0u; i < VALUE_LOADS; i++) {
        let key = tile + i * SLICES + slice;
        if slice < SLICES && i * SLICES + slice < TILE && key >= share.first && key < share.count {
            (*held)[i] = value8(head_at(share, key), lane % EIGHTHS);
        }
    }
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = step.rows - 1u;
    let position = step.position + row;
    let seen = seen_from(position, params.window);
    let splits = splits_of(seen);
    let split = workgroup.y;
    // A grid may be larger than it need be.
    if split >= splits { return; }
    let groups = params.heads / params.kv_heads / GROUP_HEADS;
    let first_head = workgroup.x * GROUP_HEADS;
    // The first shares have one key more where they cannot be equal. The last one has the new row.
    let after = seen / splits * (split + 1u) + min(split + 1u, seen % splits);
    let here = OWN_ROWS > 0u && split == splits - 1u;
    let share = Share(
        (position + after - seen) % params.capacity,
        select(0u, 1u, here),
        seen / splits + select(0u, 1u, split < seen % splits),
        workgroup.x / groups,
    );

    var held_keys: array<Eight, KEY_LOADS>;
    var held_values: array<Eight, VALUE_LOADS>;
    load_keys(&held_keys, share, 0u, lane);
    load_values(&held_values, share, 0u, lane);

    // Norm and turn: a team to each query head, then to the new key and value.
    let team = lane / TEAM;
    let own_row = team - GROUP_HEADS;
    let is_query = team < GROUP_HEADS;
    let has_head = is_query || (here && own_row < OWN_ROWS);
    let is_value = !is_query && own_row == 1u;
    var a: array<vec4<f32>, TEAM_QUADS>;
    var b: array<vec4<f32>, TEAM_QUADS>;
    var turn: array<mat2x4<f32>, TEAM_QUADS>;
    var square = 0.0;
    for (var i = 0u; i < TEAM_QUADS; i++) {
        let quad = i * TEAM + lane % TEAM;
        if quad < QUADS / 2u && has_head {
            if is_query {
                let at = params.q_at / 4u + (first_head + team) * QUADS + quad;
                a[i] = q[at];
                b[i] = q[at + QUADS / 2u];
            } else {
                a[i] = own_input(own_row, share.kv_head, quad);
                b[i] = own_input(own_row, share.kv_head, quad + QUADS / 2u);
            }
            square += dot(a[i], a[i]) + dot(b[i], b[i]);
            turn[i] = mat2x4<f32>(vec4<f32>(1.0), vec4<f32>(0.0));
            if !is_value {
                let weight = select(params.k_weight, params.q_weight, is_query);
                a[i] *= weight4(weight, quad);
                b[i] *= weight4(weight, quad + QUADS / 2u);
                turn[i] = turn4(row, quad);
            }
        }
    }
    let scale = team_scale(square, lane, params.eps);
    for (var i = 0u; i < TEAM_QUADS; i++) {
        let quad = i * TEAM + lane % TEAM;
        let far = quad + QUADS / 2u;
        if quad < QUADS / 2u && has_head {
            let x = a[i] * scale;
            let y = b[i] * scale;
            let low = x * turn[i][0] - y * turn[i][1];
            let high = x * turn[i][1] + y * turn[i][0];
            if is_query {
                pool[(2u * team + quad % 2u) * EIGHTHS + quad / 2u] = low;
                pool[(2u * team + far % 2u) * EIGHTHS + far / 2u] = high;
            } else {
                scratch[own_row * QUADS + quad] = low;
                scratch[own_row * QUADS + far] = high;
            }
        }
    }
    workgroupBarrier();
    add_own(here, workgroup.x % groups == 0u, head_at(share, 0u), lane, &held_keys, &held_values);

    let part = lane % PARTS;
    let eighth = lane % EIGHTHS;
    let slice = lane / EIGHTHS;
    var most = vec4<f32>(NOTHING);
    var total = vec4<f32>();
    var low: array<vec4<f32>, GROUP_HEADS>;
    var high: array<vec4<f32>, GROUP_HEADS>;
    for (var tile = 0u; tile < share.count; tile += TILE) {
        var mine = vec4<f32>();
        for (var i = 0u; i < KEY_LOADS; i++) {
            let column = i * PARTS + part;
            if column < EIGHTHS {
                let key_low = low4(held_keys[i]);
                let key_high = high4(held_keys[i]);
                for (var h = 0u; h < GROUP_HEADS; h++) {
                    mine[h] += dot(key_low, pool[2u * h * EIGHTHS + column])
                        + dot(key_high, pool[(2u * h + 1u) * EIGHTHS + column]);
                }
            }
        }
        load_keys(&held_keys, share, tile + TILE, lane);
        scratch[lane] = mine;
        workgroupBarrier();

        var score = vec4<f32>();
        if lane < TILE {
            for (var i = 0u; i < PARTS; i++) { score += scratch[lane * PARTS + i]; }
            if tile + lane >= share.count { score = vec4<f32>(NOTHING); }
            scores[lane] = score;
        }
        workgroupBarrier();

        if lane < TILE {
            var larger = most;
            for (var i = 0u; i < TILE; i++) { larger = max(larger, scores[i]); }
            let shrink = exp(most - larger);
            let chance = exp(score - larger);
            total = total * shrink + chance;
            most = larger;
            chances[lane] = chance;
            if lane == 0u {
                shrink_of_tile = shrink;
                most_of_tile = larger;
            }
        }
        workgroupBarrier();

        let shrink = shrink_of_tile;
        for (var h = 0u; h < GROUP_HEADS; h++) {
            low[h] *= shrink[h];
            high[h] *= shrink[h];
        }
        for (var i = 0u; i < VALUE_LOADS; i++) {
            let key = i * SLICES + slice;
            if slice < SLICES && key < TILE && tile + key < share.count {
                let chance = chances[key];
                let value_low = low4(held_values[i]);
                let value_high = high4(held_values[i]);
                for (var h = 0u; h < GROUP_HEADS; h++) {
                    low[h] += chance[h] * value_low;
                    high[h] += chance[h] * value_high;
                }
            }
        }
        load_values(&held_values, share, tile + TILE, lane);
    }

    if lane < TILE { scores[lane] = total; }
    for (var h = 0u; h < GROUP_HEADS; h++) {
        if slice < SLICES {
            pool[slice * QUADS + 2u * eighth] = low[h];
            pool[slice * QUADS + 2u * eighth + 1u] = high[h];
        }
        workgroupBarrier();
        if lane < QUADS {
            var sum = vec4<f32>();
            for (var i = 0u; i < SLICES; i++) { sum += pool[i * QUADS + lane]; }
            sums[(split * params.heads + first_head + h) * QUADS + lane] = sum;
        }
        workgroupBarrier();
    }
    // By a lane that had nothing to add up just now.
    if lane == LANES - 1u {
        var all = vec4<f32>();
        for (var i = 0u; i < TILE; i++) { all += scores[i]; }
        for (var h = 0u; h < GROUP_HEADS; h++) {
            peaks[split * params.heads + first_head + h] = vec2<f32>(most_of_tile[h], all[h]);
        }
    }
}
