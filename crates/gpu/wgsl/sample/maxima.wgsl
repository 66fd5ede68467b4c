// maxima: the first in rank of every DEPTH tokens. Of the K tokens first in rank, each is its group's first or in the
// group of one of the K groups whose firsts are first, so this leaves little to search for them.
//
// Work split   a workgroup serves LANES · DEPTH tokens; a lane serves every LANES-th of them.
// Reads        logits [vocabulary]        Writes   maxima [workgroups · LANES], logits
// Constants    LANES, DEPTH, RANGE (LANES · DEPTH)

@group(1) @binding(3) var<storage, read_write> maxima: array<vec2<u32>>;

const AHEAD: u32 = 16u;    // logits that a lane asks for before it looks at the first

const_assert RANGE == LANES * DEPTH;
const_assert DEPTH % AHEAD == 0u;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = workgroup.x * RANGE;
    adjust(first, lane);
    var best = NOTHING;
    for (var start = first + lane; start < first + RANGE; start += AHEAD * LANES) {
        var bits: array<u32, AHEAD>;
        for (var i = 0u; i < AHEAD; i++) { bits[i] = logits[first_logit() + min(start + i * LANES, params.vocabulary - 1u)]; }
        for (var i = 0u; i < AHEAD; i++) {
            let id = start + i * LANES;
            let rank = rank_of(bits[i], id);
            // Ids ascend, so a tie stays with the lower one.
            if id < params.vocabulary && rank.y > best.y { best = rank; }
        }
    }
    maxima[workgroup.x * LANES + lane] = best;
}
