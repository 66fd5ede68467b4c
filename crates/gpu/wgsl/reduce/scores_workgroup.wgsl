// scores_workgroup: what attend_row adds up over lanes, through workgroup memory in two rounds.

// Lanes whose squares are added up before the others'.
const FOLD: u32 = 8u;
// Lanes whose parts of scores are added up before the others'.
const ROUND: u32 = 4u;

const_assert PARTS % ROUND == 0u;

// Of four keys, then of four more.
var<workgroup> rounds: array<vec4<f32>, LANES / ROUND * ((KEYS + 3u) / 4u)>;

// The sum over FOLD lanes, for the first of them.
fn fold(value: f32, lane: u32) -> f32 {
    pool[lane].x = value;
    workgroupBarrier();
    var total = 0.0;
    if lane % FOLD == 0u {
        for (var i = 0u; i < FOLD; i++) { total += pool[lane + i].x; }
    }
    return total;
}

// Scores of up to eight keys, of which each of PARTS lanes has a part.
fn scores_of(parts: mat2x4<f32>, lane: u32) -> mat2x4<f32> {
    pool[lane] = parts[0];
    if KEYS > 4u { pool[LANES + lane] = parts[1]; }
    workgroupBarrier();
    if lane < LANES / ROUND * ((KEYS + 3u) / 4u) {
        let at = ROUND * lane;
        rounds[lane] = (pool[at] + pool[at + 1u]) + (pool[at + 2u] + pool[at + 3u]);
    }
    workgroupBarrier();
    let first = lane / PARTS * (PARTS / ROUND);
    var total = mat2x4<f32>();
    for (var i = 0u; i < PARTS / ROUND; i++) {
        total[0] += rounds[first + i];
        if KEYS > 4u { total[1] += rounds[LANES / ROUND + first + i]; }
    }
    return total;
}
