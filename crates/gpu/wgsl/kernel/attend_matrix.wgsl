// attend_matrix: softmax attention of many rows over each other, all of them, with a scale of one, on the matrix units of a
// GPU that has them.
//
// Work split   one workgroup answers 32 · TEAMS rows (x) for one head (y); each of its subgroups has 32 of them, and each
//              lane one. It walks along the keys in tiles of KEYS keys, which all lanes bring to workgroup memory in half
//              precision. A chance is exp(score - most), where `most` is about the row's largest score: sums are rescaled
//              only if a score exceeds it by more than GROWTH, which is rare after the first tiles. Sums are single precision.
// Reads        q [rows, heads · HEAD_WIDTH], keys, values [rows, kv_heads · HEAD_WIDTH]
// Writes       y, as q
// Constants    SUBGROUP, TEAMS, HEAD_WIDTH (a multiple of 4, at most 80)
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
@group(1) @binding(4) var<storage, read_write> y: array<vec4<f32>>;

const NOTHING: f32 = -3.0e38;
// The largest exponent of a chance, which half precision can hold with room to spare.
const GROWTH: f32 = 8.0;
const LANES: u32 = SUBGROUP * TEAMS;
const ROWS: u32 = 32u * TEAMS;
const KEYS: u32 = 32u;
const QUADS: u32 = HEAD_WIDTH / 4u;
// Matrices that a head consists of, the last filled up with zeros.
const PIECES: u32 = (HEAD_WIDTH + 15u) / 16u;
// Quads from a row of a tile to the next: more than it has, so that rows lie in different banks.
const STRIDE: u32 = 4u * PIECES + 2u;
const CHANCE_STRIDE: u32 = KEYS / 4u + 2u;
const SCORE_STRIDE: u32 = KEYS / 4u + 1u;
// The largest number in half precision: what is larger would become infinite.
const LARGEST: f32 = 65504.0;

const_assert SUBGROUP == 32u && PIECES <= 5u && HEAD_WIDTH % 4u == 0u;

// Keys, then values, then chances; at first the queries, which stay in registers.
const VALUES_AT: u32 = KEYS * STRIDE;
const CHANCES_AT: u32 = 2u * KEYS * STRIDE;
var<workgroup> tile: array<vec4<f16>, max(CHANCES_AT + ROWS * CHANCE_STRIDE, ROWS * STRIDE)>;
// Scores; while no lane needs them, sums on their way to lanes.
var<workgroup> scores: array<vec4<f32>, ROWS * SCORE_STRIDE>;
// Whether a score exceeds what a row had seen by more than GROWTH.
var<workgroup> exceeded: u32;

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
        tile[row * STRIDE + quad] = halves(held);
    }
}

fn bring_keys_and_values(first: u32, kv_head: u32, lane: u32) {
    for (var index = lane; index < KEYS * 4u * PIECES; index += LANES) {
        let row = index / (4u * PIECES);
        let quad = index % (4u * PIECES);
        var key = vec4<f32>();
        var value = vec4<f32>();
        if first + row < step.rows && quad < QUADS {
            let at = ((first + row) * params.kv_heads + kv_head) * QUADS + quad;
            key = keys[at];
            value = values[at];
        }
        tile[row * STRIDE + quad] = halves(key);
        tile[VALUES_AT + row * STRIDE + quad] = halves(value);
    }
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first_row = workgroup.x * ROWS;
    if first_row >= step.rows { return; }
    let head = workgroup.y;
    let kv_head = head / (params.heads / params.kv_heads);
    let team = lane / SUBGROUP;
    // Where the scores and chances of this lane's row are, and those of its subgroup.
    let own_score = lane * SCORE_STRIDE;
    let own_chance = CHANCES_AT + lane * CHANCE_STRIDE;
    let team_score = team * 32u * SCORE_STRIDE;
    let team_chance = CHANCES_AT + team * 32u * CHANCE_STRIDE;

    // The queries of a subgroup: its first sixteen rows, and its last.
    var qa0: coop_mat16x16<f16, A>;
    var qa1: coop_mat16x16<f16, A>;
    var qa2: coop_mat16x16<f16, A>;
    var qa3: coop_mat16x16<f16, A>;
    var qa4: coop_mat16x16<f16, A>;
    var qb0: coop_mat16x16<f16, A>;
    var qb1: coop_mat16x16<f16, A>;
    var qb2: coop_mat16x16<f16, A>;
    var qb3: coop_mat16x16<f16, A>;
    var qb4: coop_mat16x16<f16, A>;
    bring_queries(first_row, head, lane);
    workgroupBarrier();
    let query_at = team * 32u * STRIDE;
    qa0 = coopLoadT<coop_mat16x16<f16, A>>(&tile[query_at + 0u], STRIDE);
    if PIECES > 1u { qa1 = coopLoadT<coop_mat16x16<f16, A>>(&tile[query_at + 4u], STRIDE); }
    if PIECES > 2u { qa2 = coopLoadT<coop_mat16x16<f16, A>>(&tile[query_at + 8u], STRIDE); }
    if PIECES > 3u { qa3 = coopLoadT<coop_mat16x16<f16, A>>(&tile[query_at + 12u], STRIDE); }
    if PIECES > 4u { qa4 = coopLoadT<coop_mat16x16<f16, A>>(&tile[query_at + 16u], STRIDE); }
    qb0 = coopLoadT<coop_mat16x16<f16, A>>(&tile[query_at + 16u * STRIDE + 0u], STRIDE);
    if PIECES > 1u { qb1 = coopLoadT<coop_mat16x16<f16, A>>(&tile[query_at + 16u * STRIDE + 4u], STRIDE); }
    if PIECES > 2u { qb2 = coopLoadT<coop_mat16x16<f16, A>>(&tile[query_at + 16u * STRIDE + 8u], STRIDE); }
    if PIECES > 3u { qb3 = coopLoadT<coop_mat16x16<f16, A>>(&tile[query_at + 16u * STRIDE + 12u], STRIDE); }
    if PIECES > 4u { qb4 = coopLoadT<coop_mat16x16<f16, A>>(&tile[query_at + 16u * STRIDE + 16u], STRIDE); }

    // What this subgroup adds up, likewise.
    var oa0: coop_mat16x16<f32, C>;
    var oa1: coop_mat16x16<f32, C>;
    var oa2: coop_mat16x16<f32, C>;
    var oa3: coop_mat16x16<f32, C>;
    var oa4: coop_mat16x16<f32, C>;
    var ob0: coop_mat16x16<f32, C>;
    var ob1: coop_mat16x16<f32, C>;
    var ob2: coop_mat16x16<f32, C>;
    var ob3: coop_mat16x16<f32, C>;
    var ob4: coop_mat16x16<f32, C>;
    var most = NOTHING;
    var total = 0.0;
    for (var first = 0u; first < step.rows; first += KEYS) {
        workgroupBarrier();
        bring_keys_and_values(first, kv_head, lane);
        workgroupBarrier();
        for (var block = 0u; block < KEYS; block += 16u) {
            let at = block * STRIDE;
            var a: coop_mat16x16<f32, C>;
            var b: coop_mat16x16<f32, C>;
            let k0 = coopLoad<coop_mat16x16<f16, B>>(&tile[at], STRIDE);
            a = coopMultiplyAdd(qa0, k0, a);
            b = coopMultiplyAdd(qb0, k0, b);
            if PIECES > 1u {
                let k = coopLoad<coop_mat16x16<f16, B>>(&tile[at + 4u], STRIDE);
                a = coopMultiplyAdd(qa1, k, a);
                b = coopMultiplyAdd(qb1, k, b);
            }
            if PIECES > 2u {
                let k = coopLoad<coop_mat16x16<f16, B>>(&tile[at + 8u], STRIDE);
                a = coopMultiplyAdd(qa2, k, a);
                b = coopMultiplyAdd(qb2, k, b);
            }
            if PIECES > 3u {
                let k = coopLoad<coop_mat16x16<f16, B>>(&tile[at + 12u], STRIDE);
                a = coopMultiplyAdd(qa3, k, a);
                b = coopMultiplyAdd(qb3, k, b);
            }
            if PIECES > 4u {
                let k = coopLoad<coop_mat16x16<f16, B>>(&tile[at + 16u], STRIDE);
                a = coopMultiplyAdd(qa4, k, a);
                b = coopMultiplyAdd(qb4, k, b);
            }
            coopStoreT(a, &scores[team_score + block / 4u], SCORE_STRIDE);
            coopStoreT(b, &scores[team_score + 16u * SCORE_STRIDE + block / 4u], SCORE_STRIDE);
        }
        workgroupBarrier();

        let seen = vec4<u32>(min(step.rows - first, KEYS));
        var held: array<vec4<f32>, KEYS / 4u>;
        var larger = most;
        for (var i = 0u; i < KEYS / 4u; i++) {
            let is_seen = 4u * i + vec4<u32>(0u, 1u, 2u, 3u) < seen;
            let four = select(vec4<f32>(NOTHING), scores[own_score + i], is_seen);
            held[i] = four;
            larger = max(larger, max(max(four.x, four.y), max(four.z, four.w)));
        }
        if larger > most + GROWTH { exceeded = 1u; }
        if workgroupUniformLoad(&exceeded) != 0u {
            exceeded = 0u;
            let shrink = exp(most - larger);
            total *= shrink;
            most = larger;
            coopStoreT(oa0, &scores[team_score], SCORE_STRIDE);
            coopStoreT(ob0, &scores[team_score + 16u * SCORE_STRIDE], SCORE_STRIDE);
            workgroupBarrier();
            for (var i = 0u; i < 4u; i++) { scores[own_score + i] *= shrink; }
            workgroupBarrier();
            oa0 = coopLoadT<coop_mat16x16<f32, C>>(&scores[team_score], SCORE_STRIDE);
            ob0 = coopLoadT<coop_mat16x16<f32, C>>(&scores[team_score + 16u * SCORE_STRIDE], SCORE_STRIDE);
            workgroupBarrier();
            if PIECES > 1u {
                coopStoreT(oa1, &scores[team_score], SCORE_STRIDE);
                coopStoreT(ob1, &scores[team_score + 16u * SCORE_STRIDE], SCORE_STRIDE);
                workgroupBarrier();
                for (var i = 0u; i < 4u; i++) { scores[own_score + i] *= shrink; }
                workgroupBarrier();
                oa1 = coopLoadT<coop_mat16x16<f32, C>>(&scores[team_score], SCORE_STRIDE);
                ob1 = coopLoadT<coop_mat16x16<f32, C>>(&scores[team_score + 16u * SCORE_STRIDE], SCORE_STRIDE);
                workgroupBarrier();
            }
            if PIECES > 2u {
                coopStoreT(oa2, &scores[team_score], SCORE_STRIDE);
                coopStoreT(ob2, &scores[team_score + 16u * SCORE_STRIDE], SCORE_STRIDE);
                workgroupBarrier();
                for (var i = 0u; i < 4u; i++) { scores[own_score + i] *= shrink; }
                workgroupBarrier();
                oa2 = coopLoadT<coop_mat16x16<f32, C>>(&scores[team_score], SCORE_STRIDE);
                ob2 = coopLoadT<coop_mat16x16<f32, C>>(&scores[team_score + 16u * SCORE_STRIDE], SCORE_STRIDE);
                workgroupBarrier();
            }
            if PIECES > 3u {
                coopStoreT(oa3, &scores[team_score], SCORE_STRIDE);
                coopStoreT(ob3, &scores[team_score + 16u * SCORE_STRIDE], SCORE_STRIDE);
                workgroupBarrier();
                for (var i = 0u; i < 4u; i++) { scores[own_score + i] *= shrink; }
                workgroupBarrier();
                oa3 = coopLoadT<coop_mat16x16<f32, C>>(&scores[team_score], SCORE_STRIDE);
                ob3 = coopLoadT<coop_mat16x16<f32, C>>(&scores[team_score + 16u * SCORE_STRIDE], SCORE_STRIDE);
                workgroupBarrier();
            }
            if PIECES > 4u {
                coopStoreT(oa4, &scores[team_score], SCORE_STRIDE);
                coopStoreT(ob4, &scores[team_score + 16u * SCORE_STRIDE], SCORE_STRIDE);
                workgroupBarrier();
                for (var i = 0u; i < 4u; i++) { scores[own_score + i] *= shrink; }
                workgroupBarrier();
                oa4 = coopLoadT<coop_mat16x16<f32, C>>(&scores[team_score], SCORE_STRIDE);
                ob4 = coopLoadT<coop_mat16x16<f32, C>>(&scores[team_score + 16u * SCORE_STRIDE], SCORE_STRIDE);
                workgroupBarrier();
            }
        }
        for (var i = 0u; i < KEYS / 4u; i++) {
            // What is not seen is so far below that nothing is left of it.
            let chance = exp(held[i] - most);
            total += chance.x + chance.y + chance.z + chance.w;
            tile[own_chance + i] = vec4<f16>(chance);
        }
        workgroupBarrier();
        for (var block = 0u; block < KEYS; block += 16u) {
            let a = coopLoadT<coop_mat16x16<f16, A>>(&tile[team_chance + block / 4u], CHANCE_STRIDE);
            let b = coopLoadT<coop_mat16x16<f16, A>>(
                &tile[team_chance + 16u * CHANCE_STRIDE + block / 4u], CHANCE_STRIDE);
            let at = VALUES_AT + block * STRIDE;
            let v0 = coopLoadT<coop_mat16x16<f16, B>>(&tile[at], STRIDE);
            oa0 = coopMultiplyAdd(a, v0, oa0);
            ob0 = coopMultiplyAdd(b, v0, ob0);
            if PIECES > 1u {
                let v = coopLoadT<coop_mat16x16<f16, B>>(&tile[at + 4u], STRIDE);
                oa1 = coopMultiplyAdd(a, v, oa1);
                ob1 = coopMultiplyAdd(b, v, ob1);
            }
            if PIECES > 2u {
                let v = coopLoadT<coop_mat16x16<f16, B>>(&tile[at + 8u], STRIDE);
                oa2 = coopMultiplyAdd(a, v, oa2);
                ob2 = coopMultiplyAdd(b, v, ob2);
            }
            if PIECES > 3u {
                let v = coopLoadT<coop_mat16x16<f16, B>>(&tile[at + 12u], STRIDE);
                oa3 = coopMultiplyAdd(a, v, oa3);
                ob3 = coopMultiplyAdd(b, v, ob3);
            }
            if PIECES > 4u {
                let v = coopLoadT<coop_mat16x16<f16, B>>(&tile[at + 16u], STRIDE);
                oa4 = coopMultiplyAdd(a, v, oa4);
                ob4 = coopMultiplyAdd(b, v, ob4);
            }
        }
    }

    // One piece after another leaves through the memory of the scores. Each lane writes its row.
    let y_at = ((first_row + lane) * params.heads + head) * QUADS;
    for (var piece = 0u; piece < PIECES; piece++) {
        workgroupBarrier();
        if piece == 0u {
            coopStoreT(oa0, &scores[team_score], SCORE_STRIDE);
            coopStoreT(ob0, &scores[team_score + 16u * SCORE_STRIDE], SCORE_STRIDE);
        }
        if piece == 1u {
            coopStoreT(oa1, &scores[team_score], SCORE_STRIDE);
            coopStoreT(ob1, &scores[team_score + 16u * SCORE_STRIDE], SCORE_STRIDE);
        }
        if piece == 2u {
            coopStoreT(oa2, &scores[team_score], SCORE_STRIDE);
            coopStoreT(ob2, &scores[team_score + 16u * SCORE_STRIDE], SCORE_STRIDE);
        }
        if piece == 3u {
            coopStoreT(oa3, &scores[team_score], SCORE_STRIDE);
            coopStoreT(ob3, &scores[team_score + 16u * SCORE_STRIDE], SCORE_STRIDE);
        }
        if piece == 4u {
            coopStoreT(oa4, &scores[team_score], SCORE_STRIDE);
            coopStoreT(ob4, &scores[team_score + 16u * SCORE_STRIDE], SCORE_STRIDE);
        }
        workgroupBarrier();
        for (var i = 0u; i < 4u; i++) {
            let quad = 4u * piece + i;
            if first_row + lane < step.rows && quad < QUADS { y[y_at + quad] = scores[own_score + i] / total; }
        }
    }
}
