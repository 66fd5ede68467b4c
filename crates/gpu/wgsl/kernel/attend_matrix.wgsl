// attend_matrix: softmax attention of many rows over each other, all of them, with a scale of one, on the matrix units of a
// GPU that has them.
//
// Work split   one workgroup answers 64 rows (x) for one head (y); each of its four subgroups has sixteen of them. It walks
//              along the keys twice, in tiles of KEYS keys, which all lanes bring to workgroup memory in half precision.
//              The first walk finds the largest score of each row. The second computes the scores again, and adds up the
//              values by their chances: since the largest score is known, no sum has to be rescaled. Sums are single
//              precision.
// Reads        q [rows, heads · HEAD_WIDTH], keys, values [rows, kv_heads · HEAD_WIDTH]
// Writes       y, as q
// Constants    SUBGROUP, HEAD_WIDTH (a multiple of 4, at most 80), KEYS (32, 64)
//
// Needs `shader-f16`, subgroups of one size, and cooperative matrices of 16 × 16 × 16, which only naga's dialect has.

struct Params {
    heads: u32,
    kv_heads: u32,
}

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(1) @binding(2) var<storage, read> keys: array<vec4<f32>>;
@group(1) @binding(3) var<storage, read> values: array<vec4<f32>>;
@group(1) @binding(4) var<storage, read_write> y: array<f32>;

const NOTHING: f32 = -3.0e38;
const TEAMS: u32 = 4u;
const LANES: u32 = SUBGROUP * TEAMS;
const ROWS: u32 = 16u * TEAMS;
const QUADS: u32 = HEAD_WIDTH / 4u;
// Matrices that a head consists of, the last filled up with zeros.
const PIECES: u32 = (HEAD_WIDTH + 15u) / 16u;
// Quads from a row of a tile to the next: two more than it has, so that rows lie in different banks.
const STRIDE: u32 = 4u * PIECES + 2u;
const CHANCE_STRIDE: u32 = KEYS / 4u + 2u;
const SCORE_STRIDE: u32 = KEYS + 4u;
// Lanes that share a row.
const SHARES: u32 = SUBGROUP / 16u;
const SHARE: u32 = KEYS / SHARES;
// The largest number in half precision: what is larger would become infinite.
const LARGEST: f32 = 65504.0;

const_assert SUBGROUP == 32u && PIECES <= 5u && HEAD_WIDTH % 4u == 0u && (KEYS == 32u || KEYS == 64u);

// Queries at first, which stay in registers.
var<workgroup> key_tile: array<vec4<f16>, ROWS * STRIDE>;
var<workgroup> value_tile: array<vec4<f16>, KEYS * STRIDE>;
var<workgroup> scores: array<f32, ROWS * SCORE_STRIDE>;
var<workgroup> chances: array<vec4<f16>, ROWS * CHANCE_STRIDE>;
// What the lanes that share a row found.
var<workgroup> shares: array<f32, LANES>;

fn halves(values: vec4<f32>) -> vec4<f16> {
    let bounded = clamp(values, vec4<f32>(-LARGEST), vec4<f32>(LARGEST));
    // Infinity and NaN stay, so that they are found out.
    return vec4<f16>(select(bounded, values, magnitude(values) >= vec4<u32>(0x7f800000u)));
}

fn bring_queries(first: u32, head: u32, lane: u32) {
    for (var index = lane; index < ROWS * 4u * PIECES; index += LANES) {
        let row = index / (4u * PIECES);
        let quad = index % (4u * PIECES);
        var held = vec4<f32>();
        if first + row < step.rows && quad < QUADS {
            held = q[((first + row) * params.heads + head) * QUADS + quad];
        }
        key_tile[row * STRIDE + quad] = halves(held);
    }
}

fn bring_keys(tile: u32, kv_head: u32, lane: u32) {
    for (var index = lane; index < KEYS * 4u * PIECES; index += LANES) {
        let row = index / (4u * PIECES);
        let quad = index % (4u * PIECES);
        var held = vec4<f32>();
        if tile + row < step.rows && quad < QUADS {
            held = keys[((tile + row) * params.kv_heads + kv_head) * QUADS + quad];
        }
        key_tile[row * STRIDE + quad] = halves(held);
    }
}

fn bring_values(tile: u32, kv_head: u32, lane: u32) {
    for (var index = lane; index < KEYS * 4u * PIECES; index += LANES) {
        let row = index / (4u * PIECES);
        let quad = index % (4u * PIECES);
        var held = vec4<f32>();
        if tile + row < step.rows && quad < QUADS {
            held = values[((tile + row) * params.kv_heads + kv_head) * QUADS + quad];
        }
        value_tile[row * STRIDE + quad] = halves(held);
    }
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first_row = workgroup.x * ROWS;
    if first_row >= step.rows { return; }
    let head = workgroup.y;
    let kv_head = head / (params.heads / params.kv_heads);
    let team = lane / SUBGROUP;
    // The row of the tile, and the part of it, whose scores this lane reads.
    let own_row = team * 16u + lane % 16u;
    let share = lane % SUBGROUP / 16u;
    let own_score = own_row * SCORE_STRIDE + share * SHARE;
    let team_scores = team * 16u * SCORE_STRIDE;
    let team_chances = team * 16u * CHANCE_STRIDE;

    bring_queries(first_row, head, lane);
    workgroupBarrier();
    let query_at = team * 16u * STRIDE;
    let q0 = coopLoadT<coop_mat16x16<f16, A>>(&key_tile[query_at], STRIDE);
    let q1 = coopLoadT<coop_mat16x16<f16, A>>(&key_tile[query_at + 4u * min(1u, PIECES - 1u)], STRIDE);
    let q2 = coopLoadT<coop_mat16x16<f16, A>>(&key_tile[query_at + 4u * min(2u, PIECES - 1u)], STRIDE);
    let q3 = coopLoadT<coop_mat16x16<f16, A>>(&key_tile[query_at + 4u * min(3u, PIECES - 1u)], STRIDE);
    let q4 = coopLoadT<coop_mat16x16<f16, A>>(&key_tile[query_at + 4u * min(4u, PIECES - 1u)], STRIDE);

    var most = NOTHING;
    for (var tile = 0u; tile < step.rows; tile += KEYS) {
        workgroupBarrier();
        bring_keys(tile, kv_head, lane);
        workgroupBarrier();
        for (var block = 0u; block < KEYS; block += 16u) {
            let at = block * STRIDE;
            var sum: coop_mat16x16<f32, C>;
            sum = coopMultiplyAdd(q0, coopLoad<coop_mat16x16<f16, B>>(&key_tile[at], STRIDE), sum);
            if PIECES > 1u { sum = coopMultiplyAdd(q1, coopLoad<coop_mat16x16<f16, B>>(&key_tile[at + 4u], STRIDE), sum); }
            if PIECES > 2u { sum = coopMultiplyAdd(q2, coopLoad<coop_mat16x16<f16, B>>(&key_tile[at + 8u], STRIDE), sum); }
            if PIECES > 3u { sum = coopMultiplyAdd(q3, coopLoad<coop_mat16x16<f16, B>>(&key_tile[at + 12u], STRIDE), sum); }
            if PIECES > 4u { sum = coopMultiplyAdd(q4, coopLoad<coop_mat16x16<f16, B>>(&key_tile[at + 16u], STRIDE), sum); }
            coopStoreT(sum, &scores[team_scores + block], SCORE_STRIDE);
        }
        workgroupBarrier();
        let seen = min(max(step.rows - tile, share * SHARE) - share * SHARE, SHARE);
        for (var i = 0u; i < seen; i++) { most = max(most, scores[own_score + i]); }
    }
    shares[lane] = most;
    workgroupBarrier();
    most = max(most, shares[lane ^ 16u]);

    var o0: coop_mat16x16<f32, C>;
    var o1: coop_mat16x16<f32, C>;
    var o2: coop_mat16x16<f32, C>;
    var o3: coop_mat16x16<f32, C>;
    var o4: coop_mat16x16<f32, C>;
    var total = 0.0;
    for (var tile = 0u; tile < step.rows; tile += KEYS) {
        workgroupBarrier();
        bring_keys(tile, kv_head, lane);
        bring_values(tile, kv_head, lane);
        workgroupBarrier();
        for (var block = 0u; block < KEYS; block += 16u) {
            let at = block * STRIDE;
            var sum: coop_mat16x16<f32, C>;
            sum = coopMultiplyAdd(q0, coopLoad<coop_mat16x16<f16, B>>(&key_tile[at], STRIDE), sum);
            if PIECES > 1u { sum = coopMultiplyAdd(q1, coopLoad<coop_mat16x16<f16, B>>(&key_tile[at + 4u], STRIDE), sum); }
            if PIECES > 2u { sum = coopMultiplyAdd(q2, coopLoad<coop_mat16x16<f16, B>>(&key_tile[at + 8u], STRIDE), sum); }
            if PIECES > 3u { sum = coopMultiplyAdd(q3, coopLoad<coop_mat16x16<f16, B>>(&key_tile[at + 12u], STRIDE), sum); }
            if PIECES > 4u { sum = coopMultiplyAdd(q4, coopLoad<coop_mat16x16<f16, B>>(&key_tile[at + 16u], STRIDE), sum); }
            coopStoreT(sum, &scores[team_scores + block], SCORE_STRIDE);
        }
        workgroupBarrier();
        let seen = min(max(step.rows - tile, share * SHARE) - share * SHARE, SHARE);
        for (var i = 0u; i < SHARE; i += 4u) {
            let at = own_score + i;
            let score = vec4<f32>(scores[at], scores[at + 1u], scores[at + 2u], scores[at + 3u]);
            let is_seen = vec4<u32>(i, i + 1u, i + 2u, i + 3u) < vec4<u32>(seen);
            let chance = select(vec4<f32>(), exp(score - most), is_seen);
            total += chance.x + chance.y + chance.z + chance.w;
            chances[own_row * CHANCE_STRIDE + (share * SHARE + i) / 4u] = vec4<f16>(chance);
        }
        workgroupBarrier();
        for (var block = 0u; block < KEYS; block += 16u) {
            let chance = coopLoadT<coop_mat16x16<f16, A>>(&chances[team_chances + block / 4u], CHANCE_STRIDE);
            let at = block * STRIDE;
            o0 = coopMultiplyAdd(chance, coopLoadT<coop_mat16x16<f16, B>>(&value_tile[at], STRIDE), o0);
            if PIECES > 1u { o1 = coopMultiplyAdd(chance, coopLoadT<coop_mat16x16<f16, B>>(&value_tile[at + 4u], STRIDE), o1); }
            if PIECES > 2u { o2 = coopMultiplyAdd(chance, coopLoadT<coop_mat16x16<f16, B>>(&value_tile[at + 8u], STRIDE), o2); }
            if PIECES > 3u { o3 = coopMultiplyAdd(chance, coopLoadT<coop_mat16x16<f16, B>>(&value_tile[at + 12u], STRIDE), o3); }
            if PIECES > 4u { o4 = coopMultiplyAdd(chance, coopLoadT<coop_mat16x16<f16, B>>(&value_tile[at + 16u], STRIDE), o4); }
        }
    }
    shares[lane] = total;
    workgroupBarrier();
    total += shares[lane ^ 16u];

    // One piece after another leaves through the memory of the scores. Each lane writes half a row of it.
    for (var piece = 0u; piece < PIECES; piece++) {
        workgroupBarrier();
        if piece == 0u { coopStoreT(o0, &scores[team_scores], SCORE_STRIDE); }
        if piece == 1u { coopStoreT(o1, &scores[team_scores], SCORE_STRIDE); }
        if piece == 2u { coopStoreT(o2, &scores[team_scores], SCORE_STRIDE); }
        if piece == 3u { coopStoreT(o3, &scores[team_scores], SCORE_STRIDE); }
        if piece == 4u { coopStoreT(o4, &scores[team_scores], SCORE_STRIDE); }
        workgroupBarrier();
        let row = first_row + own_row;
        if row < step.rows {
            let y_at = (row * params.heads + head) * HEAD_WIDTH;
            for (var i = 0u; i < 8u; i++) {
                let column = share * 8u + i;
                if 16u * piece + column < HEAD_WIDTH {
                    y[y_at + 16u * piece + column] = scores[own_row * SCORE_STRIDE + column] / total;
                }
            }
        }
    }
}
