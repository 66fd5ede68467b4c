// greedy: takes the token that is first in rank.
//
// Work split   one workgroup
// Reads        maxima [MAXIMA]        Writes   state, tokens, recent, seen
// Constants    LANES, MAXIMA

@group(1) @binding(3) var<storage, read> maxima: array<vec2<u32>>;

var<workgroup> bests: array<vec2<u32>, LANES>;

@compute @workgroup_size(LANES)
fn main(@builtin(local_invocation_index) lane: u32) {
    var best = NOTHING;
    for (var at = lane; at < MAXIMA; at += LANES) {
        let rank = maxima[at];
        if long_less(best, rank) { best = rank; }
    }
    bests[lane] = best;
    for (var half = LANES / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if lane < half && long_less(bests[lane], bests[lane + half]) { bests[lane] = bests[lane + half]; }
    }
    if lane == 0u { finish(~bests[0].x, bests[0].y); }
}
