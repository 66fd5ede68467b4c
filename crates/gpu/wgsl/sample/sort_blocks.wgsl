// sort_blocks: the ranks of every CAPACITY tokens in a row, the first in rank first.
//
// Work split   one workgroup serves a block
// Reads        logits [vocabulary]        Writes   order [blocks · CAPACITY], logits
// Constants    LANES, CAPACITY, RANGE (CAPACITY)

@group(1) @binding(4) var<storage, read_write> order: array<vec2<u32>>;

const_assert RANGE == CAPACITY;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = workgroup.x * CAPACITY;
    adjust(first, lane);
    for (var at = lane; at < CAPACITY; at += LANES) {
        // What is no token comes after all tokens.
        candidates[at] = NOTHING;
        if first + at < params.vocabulary { candidates[at] = rank_of(logits[first_logit() + first + at], first + at); }
    }
    sort(CAPACITY, lane);
    for (var at = lane; at < CAPACITY; at += LANES) { order[first + at] = candidates[at]; }
}
