// maxima: the first in rank of every DEPTH tokens. Of the K tokens first in rank, each is its group's first or in the
// group of one of the K groups whose firsts are first, so this leaves little to search for them.
//
// Work split   a workgroup serves LANES · DEPTH tokens; a lane serves every LANES-th of them.
// Reads        logits [vocabulary]        Writes   maxima [workgroups · LANES], logits
// Constants    LANES, DEPTH, RANGE (LANES · DEPTH)

@group(1) @binding(3) var<storage, read_write> maxima: array<vec2<u32>>;

const_assert RANGE == LANES * DEPTH;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = workgroup.x * RANGE;
    adjust(first, lane);
    var best = NOTHING;
    for (var i = 0u; i < DEPTH; i++) {
        let id = first + i * LANES + lane;
        if id < params.vocabulary {
            let rank = rank_of(logits[id], id);
            // Ids ascend, so a tie stays with the lower one.
            if rank.y > best.y { best = rank; }
        }
    }
    maxima[workgroup.x * LANES + lane] = best;
}
