// attend_row: from the raw products of a row to its attention sums, in one dispatch: normalises and rotates a query head and,
// where the layer owns its cache, the new key and value, stores these, and attends. Rows need not be of one conversation.
//
// Work split   one workgroup answers one head (x) of one row (z) over one share of the keys that it sees (y), from the newest
//              back.
//              A slice of PARTS lanes takes KEYS keys at a time and keeps sums of its own, which meet in the end. A lane
//              has PIECES eights of columns, of the query, of each key and of each value. Eight eights of keys and as many
//              of values are asked for before they are needed, the first of them while the heads are normed.
// Reads        q with the key, v (raw, from q_at, k_at and v_at on, rows q_stride and v_stride floats apart, multiples of four), vectors (weights of norms),
//              angles [step rows, HEAD_WIDTH / 2] as (cos, sin), keys, values [slots, capacity, kv_heads] of heads
// Writes       sums [rows, MOST_SPLITS, heads · HEAD_WIDTH], not divided; peaks [rows, MOST_SPLITS, heads] as (largest
//              score, total);
//              a row of keys and values, at its position modulo the capacity
// Slots        cache: Eight, key8, value8, low4, high4     kv: OWN_ROWS, own_input, store_own, with_own
//              reduce: FOLD, fold, scores_of     turn, splits
// Constants    LANES, TEAM, PARTS, PIECES, HEAD_WIDTH, HEAD_VECTORS (of a head in the cache), SPLIT_KEYS, MOST_SPLITS
//
// What a lane holds has names rather than indices: compilers keep arrays that loops walk through out of registers, and
// wait for each load in such a loop.

struct Params {
    heads: u32,
    kv_heads: u32,
    window: u32,      // zero: everything before
    capacity: u32,    // rows of the cache
    last: u32,        // one: q is the step's last row alone
    q_at: u32,        // first floats of the raw products
    q_stride: u32,
    k_at: u32,
    v_at: u32,
    v_stride: u32,
    q_weight: u32,    // first floats in `vectors`, or NO_WEIGHT
    k_weight: u32,
    eps: f32,
}

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(1) @binding(2) var<storage, read> vectors: array<f32>;
@group(1) @binding(3) var<storage, read> angles: array<vec4<f32>>;
@group(1) @binding(4) var<storage, read_write> sums: array<vec4<f32>>;
@group(1) @binding(5) var<storage, read_write> peaks: array<vec2<f32>>;

const NOTHING: f32 = -3.0e38;
const EIGHTHS: u32 = HEAD_WIDTH / 8u;
const SLICES: u32 = LANES / PARTS;
// Keys that a slice takes at a time.
const KEYS: u32 = 8u / PIECES;
// Keys that all slices take at a time.
const TILE: u32 = SLICES * KEYS;

const_assert PIECES == 1u || PIECES == 2u || PIECES == 4u;
const_assert PIECES * PARTS >= EIGHTHS;
const_assert SLICES % 4u == 0u;
// In a team, a lane has one quad of either half of a head.
const_assert 2u * TEAM >= QUADS;
const_assert TEAM * (1u + OWN_ROWS) <= LANES;

// The query head, then the new key and value, all rotated but not scaled yet.
var<workgroup> rotated: array<vec4<f32>, QUADS * (1u + OWN_ROWS)>;
// In the end a piece of all slices' sums, first the low halves of eights.
var<workgroup> pool: array<vec4<f32>, 2u * LANES>;
var<workgroup> squares: array<f32, LANES / FOLD>;
// What each slice found: its largest score, and the total of its chances.
var<workgroup> mosts: array<f32, SLICES>;
var<workgroup> totals: array<f32, SLICES>;

// A share of the keys, counted from its newest back.
struct Share {
    base: u32,      // the conversation's first row of the cache
    newest: u32,    // row of it
    first: u32,     // zero, or one where the newest is not in the cache yet
    count: u32,
    kv_head: u32,
}

// Pieces of keys or of values: all of the first, then those of the next.
struct Held { a: Eight, b: Eight, c: Eight, d: Eight, e: Eight, f: Eight, g: Eight, h: Eight }

fn head_at(share: Share, key: u32) -> u32 {
    let row = share.newest + select(params.capacity, 0u, key <= share.newest) - key;
    return ((share.base + row) * params.kv_heads + share.kv_head) * HEAD_VECTORS;
}

// A piece of a lane, or the last one where the head is not as wide: the query has zeros there.
fn eighth_of(piece: u32, part: u32) -> u32 { return min(piece * PARTS + part, EIGHTHS - 1u); }

// Where the key of a place among those held is. Past the share's end, and for what is not in the cache yet, some other
// one is read in vain: that is sooner done than asking.
fn held_at(share: Share, tile: u32, slice: u32, place: u32) -> u32 {
    let key = tile + place / PIECES * SLICES + slice;
    return head_at(share, clamp(key, share.first, max(share.first, share.count - 1u)));
}

fn held_key(share: Share, tile: u32, slice: u32, part: u32, place: u32) -> Eight {
    return key8(held_at(share, tile, slice, place), eighth_of(place % PIECES, part));
}

fn held_value(share: Share, tile: u32, slice: u32, part: u32, place: u32) -> Eight {
    return value8(held_at(share, tile, slice, place), eighth_of(place % PIECES, part));
}

fn load_keys(share: Share, tile: u32, slice: u32, part: u32) -> Held {
    return Held(
        held_key(share, tile, slice, part, 0u),
        held_key(share, tile, slice, part, 1u),
        held_key(share, tile, slice, part, 2u),
        held_key(share, tile, slice, part, 3u),
        held_key(share, tile, slice, part, 4u),
        held_key(share, tile, slice, part, 5u),
        held_key(share, tile, slice, part, 6u),
        held_key(share, tile, slice, part, 7u),
    );
}

fn load_values(share: Share, tile: u32, slice: u32, part: u32) -> Held {
    return Held(
        held_value(share, tile, slice, part, 0u),
        held_value(share, tile, slice, part, 1u),
        held_value(share, tile, slice, part, 2u),
        held_value(share, tile, slice, part, 3u),
        held_value(share, tile, slice, part, 4u),
        held_value(share, tile, slice, part, 5u),
        held_value(share, tile, slice, part, 6u),
        held_value(share, tile, slice, part, 7u),
    );
}

// What makes the mean square of a team's head one, once the squares are there.
fn head_scale(team: u32) -> f32 {
    var square = 0.0;
    for (var i = 0u; i < TEAM / FOLD; i++) { square += squares[team * (TEAM / FOLD) + i]; }
    return inverse_root(square / f32(HEAD_WIDTH) + params.eps);
}

// A piece of the query.
fn query(piece: u32, part: u32, scale: f32) -> mat2x4<f32> {
    let eighth = eighth_of(piece, part);
    let inside = select(0.0, scale, piece * PARTS + part < EIGHTHS);
    return mat2x4<f32>(inside * rotated[2u * eighth], inside * rotated[2u * eighth + 1u]);
}

fn product(query: mat2x4<f32>, key: Eight) -> f32 { return dot(query[0], low4(key)) + dot(query[1], high4(key)); }

fn plus(sum: mat2x4<f32>, chance: f32, value: Eight) -> mat2x4<f32> {
    return mat2x4<f32>(sum[0] + chance * low4(value), sum[1] + chance * high4(value));
}

fn pool_piece(sum: mat2x4<f32>, lane: u32) {
    pool[lane] = sum[0];
    pool[LANES + lane] = sum[1];
}

// Brings a piece of all slices' sums together, and writes it.
fn write_piece(piece: u32, most: f32, sums_at: u32, lane: u32) {
    let half = lane / PARTS;
    let eighth = piece * PARTS + lane % PARTS;
    if half < 2u && eighth < EIGHTHS {
        var all = vec4<f32>();
        for (var slice = 0u; slice < SLICES; slice += 4u) {
            let at = half * LANES + slice * PARTS + lane % PARTS;
            let weights = slice_weights(slice, most);
            all += weights.x * pool[at] + weights.y * pool[at + PARTS]
                + weights.z * pool[at + 2u * PARTS] + weights.w * pool[at + 3u * PARTS];
        }
        sums[sums_at + 2u * eighth + half] = all;
    }
}

fn four_mosts(slice: u32) -> vec4<f32> {
    return vec4<f32>(mosts[slice], mosts[slice + 1u], mosts[slice + 2u], mosts[slice + 3u]);
}

fn slice_weights(slice: u32, most: f32) -> vec4<f32> { return exp(four_mosts(slice) - most); }

fn largest(values: vec4<f32>) -> f32 { return max(max(values.x, values.y), max(values.z, values.w)); }

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = select(workgroup.z, step.rows - 1u, params.last == 1u);
    let end = end_key(row, params.window);
    let seen = end - first_key(row, params.window);
    let splits = splits_of(seen);
    let split = workgroup.y;
    // A grid may be larger than it need be.
    if split >= splits { return; }
    let head = workgroup.x;
    let served = params.heads / params.kv_heads;
    let kv_head = head / served;
    // The last share has the new row.
    let here = OWN_ROWS > 0u && split == splits - 1u;

    // To normalise and rotate: a team has the query head, the next ones the new key and value.
    let team = lane / TEAM;
    let quad = lane % TEAM;
    let has_quad = quad < QUADS / 2u && (team == 0u || (here && team <= OWN_ROWS));
    var low = vec4<f32>();
    var high = vec4<f32>();
    var low_weight = vec4<f32>(1.0);
    var high_weight = vec4<f32>(1.0);
    var turn = mat2x4<f32>(vec4<f32>(1.0), vec4<f32>());
    if has_quad {
        if team == 0u {
            let at = (params.q_at + workgroup.z * params.q_stride) / 4u + head * QUADS + quad;
            low = q[at];
            high = q[at + QUADS / 2u];
        } else {
            low = own_input(workgroup.z, team - 1u, kv_head, quad);
            high = own_input(workgroup.z, team - 1u, kv_head, quad + QUADS / 2u);
        }
        // Values have neither weights nor rotation.
        if team < 2u {
            let weight = select(params.k_weight, params.q_weight, team == 0u);
            low_weight = weight4(weight, quad);
            high_weight = weight4(weight, quad + QUADS / 2u);
            turn = turn4(row, quad);
        }
    }

    // The first shares have one key more where they cannot be equal.
    let each = seen / splits;
    let rest = seen - each * splits;
    let later = seen - each * (split + 1u) - min(split + 1u, rest);
    let last_row = (end - 1u) % params.capacity;
    let newest = last_row + select(params.capacity, 0u, later <= last_row) - later;
    let base = slot_base(row, params.capacity);
    let share = Share(base, newest, select(0u, 1u, here), each + select(0u, 1u, split < rest), kv_head);
    let slice = lane / PARTS;
    let part = lane % PARTS;
    var held_keys = load_keys(share, 0u, slice, part);
    var held_values = load_values(share, 0u, slice, part);

    let square = fold(dot(low, low) + dot(high, high), lane);
    if lane % FOLD == 0u { squares[lane / FOLD] = square; }
    if has_quad {
        let x = low * low_weight;
        let y = high * high_weight;
        rotated[team * QUADS + quad] = x * turn[0] - y * turn[1];
        rotated[team * QUADS + quad + QUADS / 2u] = x * turn[1] + y * turn[0];
    }
    workgroupBarrier();

    let scale = head_scale(0u);
    let query0 = query(0u, part, scale);
    var query1 = query0;
    var query2 = query0;
    var query3 = query0;
    if PIECES > 1u {
        query1 = query(1u, part, scale);
        query2 = query0;
        query3 = query1;
    }
    if PIECES > 2u {
        query2 = query(2u, part, scale);
        query3 = query(3u, part, scale);
    }
    if here {
        store_own(head % served == 0u, head_at(share, 0u), lane);
        if slice == 0u {
            held_keys = with_own(0u, part, held_keys);
            held_values = with_own(1u, part, held_values);
        }
    }

    var most = NOTHING;
    var total = 0.0;
    var sum0 = mat2x4<f32>();
    var sum1 = mat2x4<f32>();
    var sum2 = mat2x4<f32>();
    var sum3 = mat2x4<f32>();
    for (var tile = 0u; tile < share.count; tile += TILE) {
        let first = vec4<f32>(
            product(query0, held_keys.a),
            product(query1, held_keys.b),
            product(query2, held_keys.c),
            product(query3, held_keys.d),
        );
        let second = vec4<f32>(
            product(query0, held_keys.e),
            product(query1, held_keys.f),
            product(query2, held_keys.g),
            product(query3, held_keys.h),
        );
        if tile + TILE < share.count { held_keys = load_keys(share, tile + TILE, slice, part); }
        var parts = mat2x4<f32>(first, second);
        if PIECES == 2u { parts[0] = vec4<f32>(first.xz + first.yw, second.xz + second.yw); }
        if PIECES == 4u { parts[0] = vec4<f32>(dot(first, vec4<f32>(1.0)), dot(second, vec4<f32>(1.0)), 0.0, 0.0); }
        let scores = scores_of(parts, lane);

        let order = vec4<u32>(0u, 1u, 2u, 3u);
        let keys0 = vec4<u32>(tile + slice) + SLICES * order;
        let keys1 = keys0 + 4u * SLICES;
        let none0 = (keys0 >= vec4<u32>(share.count)) | (order >= vec4<u32>(KEYS));
        let none1 = (keys1 >= vec4<u32>(share.count)) | (order + 4u >= vec4<u32>(KEYS));
        let scores0 = select(scores[0], vec4<f32>(NOTHING), none0);
        let scores1 = select(scores[1], vec4<f32>(NOTHING), none1);
        var larger = max(most, largest(scores0));
        if KEYS > 4u { larger = max(larger, largest(scores1)); }
        let shrink = exp(most - larger);
        most = larger;
        // The chances of what is held, in its order: of the keys at first.
        var chances0 = select(exp(scores0 - larger), vec4<f32>(), none0);
        var chances1 = vec4<f32>();
        if KEYS > 4u { chances1 = select(exp(scores1 - larger), vec4<f32>(), none1); }
        total = total * shrink + dot(chances0 + chances1, vec4<f32>(1.0));

        sum0 *= shrink;
        if PIECES == 1u {
            sum0 = plus(sum0, chances0.x, held_values.a);
            sum0 = plus(sum0, chances0.y, held_values.b);
            sum0 = plus(sum0, chances0.z, held_values.c);
            sum0 = plus(sum0, chances0.w, held_values.d);
            sum0 = plus(sum0, chances1.x, held_values.e);
            sum0 = plus(sum0, chances1.y, held_values.f);
            sum0 = plus(sum0, chances1.z, held_values.g);
            sum0 = plus(sum0, chances1.w, held_values.h);
        } else if PIECES == 2u {
            sum1 *= shrink;
            sum0 = plus(sum0, chances0.x, held_values.a);
            sum1 = plus(sum1, chances0.x, held_values.b);
            sum0 = plus(sum0, chances0.y, held_values.c);
            sum1 = plus(sum1, chances0.y, held_values.d);
            sum0 = plus(sum0, chances0.z, held_values.e);
            sum1 = plus(sum1, chances0.z, held_values.f);
            sum0 = plus(sum0, chances0.w, held_values.g);
            sum1 = plus(sum1, chances0.w, held_values.h);
        } else {
            sum1 *= shrink;
            sum2 *= shrink;
            sum3 *= shrink;
            sum0 = plus(sum0, chances0.x, held_values.a);
            sum1 = plus(sum1, chances0.x, held_values.b);
            sum2 = plus(sum2, chances0.x, held_values.c);
            sum3 = plus(sum3, chances0.x, held_values.d);
            sum0 = plus(sum0, chances0.y, held_values.e);
            sum1 = plus(sum1, chances0.y, held_values.f);
            sum2 = plus(sum2, chances0.y, held_values.g);
            sum3 = plus(sum3, chances0.y, held_values.h);
        }
        if tile + TILE < share.count { held_values = load_values(share, tile + TILE, slice, part); }
    }

    if part == 0u {
        mosts[slice] = most;
        totals[slice] = total;
    }
    pool_piece(sum0, lane);
    workgroupBarrier();
    var most_of_all = NOTHING;
    for (var i = 0u; i < SLICES; i += 4u) { most_of_all = max(most_of_all, largest(four_mosts(i))); }
    let place = (workgroup.z * MOST_SPLITS + split) * params.heads + head;
    let sums_at = place * QUADS;
    write_piece(0u, most_of_all, sums_at, lane);
    if PIECES > 1u {
        workgroupBarrier();
        pool_piece(sum1, lane);
        workgroupBarrier();
        write_piece(1u, most_of_all, sums_at, lane);
    }
    if PIECES > 2u {
        workgroupBarrier();
        pool_piece(sum2, lane);
        workgroupBarrier();
        write_piece(2u, most_of_all, sums_at, lane);
        workgroupBarrier();
        pool_piece(sum3, lane);
        workgroupBarrier();
        write_piece(3u, most_of_all, sums_at, lane);
    }
    // By a lane that had nothing to add up just now.
    if lane == LANES - 1u {
        var all = 0.0;
        for (var i = 0u; i < SLICES; i += 4u) {
            let four = vec4<f32>(totals[i], totals[i + 1u], totals[i + 2u], totals[i + 3u]);
            all += dot(slice_weights(i, most_of_all), four);
        }
        peaks[place] = vec2<f32>(most_of_all, all);
    }
}
