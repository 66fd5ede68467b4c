// by_id: draws from all tokens that min_p leaves, walking along their ids: first over blocks, then in one.
//
// Work split   one workgroup
// Reads        block_weights [blocks + 1], logits [vocabulary]        Writes   state, tokens, recent, seen
// Constants    LANES, BLOCK, BLOCKS, PER_LANE (blocks for a lane)

@group(1) @binding(1) var<storage, read> logits: array<u32>;
@group(1) @binding(5) var<storage, read> block_weights: array<vec2<u32>>;

const EACH: u32 = BLOCK / LANES;

var<workgroup> block: u32;
var<workgroup> rest: vec2<u32>;    // of the drawn number, what the blocks before leave of it
var<workgroup> token: u32;

@compute @workgroup_size(LANES)
fn main(@builtin(local_invocation_index) lane: u32) {
    let top = block_weights[BLOCKS].y;
    if lane == 0u {
        block = 0u;
        rest = NOTHING;
        token = 0u;
    }
    var own = NOTHING;
    for (var i = 0u; i < PER_LANE; i++) {
        let at = lane * PER_LANE + i;
        if at < BLOCKS { own = long_add(own, block_weights[at]); }
    }
    let all = sum_up_to(own, lane);
    let goal = random_below(all.all);
    var sum = long_subtract(all.through, own);
    if !long_less(goal, sum) && long_less(goal, all.through) {
        for (var i = 0u; i < PER_LANE; i++) {
            let at = lane * PER_LANE + i;
            let before = sum;
            if at < BLOCKS { sum = long_add(sum, block_weights[at]); }
            if !long_less(goal, before) && long_less(goal, sum) {
                block = at;
                rest = long_subtract(goal, before);
            }
        }
    }
    workgroupBarrier();

    let left = rest;
    let first = block * BLOCK + lane * EACH;
    var weights: array<vec2<u32>, EACH>;
    own = NOTHING;
    for (var i = 0u; i < EACH; i++) {
        weights[i] = NOTHING;
        if first + i < params.vocabulary {
            let key = key_of(logits[first_logit() + first + i]);
            if passes_min_p(key, top) { weights[i] = weight(key, top, params.temperature); }
        }
        own = long_add(own, weights[i]);
    }
    let inside = sum_up_to(own, lane);
    sum = long_subtract(inside.through, own);
    for (var i = 0u; i < EACH; i++) {
        let before = sum;
        sum = long_add(sum, weights[i]);
        if !long_less(left, before) && long_less(left, sum) { token = first + i; }
    }
    workgroupBarrier();
    if lane == 0u { finish(token, top); }
}
