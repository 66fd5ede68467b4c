// by_rank: draws from what top_k, top_p and min_p leave of all tokens, however many, in the order of their ranks.
//
// Work split   one workgroup; a lane serves PER_LANE sorted blocks in a row. What is looked for is always the token at
//              which a measure (a number of tokens, or a weight), added up in the order of ranks, reaches a goal. Its
//              key is found bit by bit, by asking all blocks what they hold above it; then, of the tokens with that
//              key, the one, along the ids.
// Reads        order [BLOCKS · BLOCK], weights [BLOCKS · BLOCK]        Writes   state, tokens, recent, seen
// Constants    LANES, BLOCK, BLOCKS, PER_LANE

@group(1) @binding(4) var<storage, read> order: array<vec2<u32>>;
@group(1) @binding(6) var<storage, read> weights: array<vec4<u32>>;

const COUNT: u32 = 0u;     // the measures
const MASS: u32 = 1u;
const WEIGHT: u32 = 2u;

var<workgroup> largest: atomic<u32>;
var<workgroup> found: vec2<u32>;                // the block that holds the token, and its place there

var<private> kept: array<u32, PER_LANE>;        // how many of each block are kept
var<private> low: array<u32, PER_LANE>;         // how many are surely above the key in question
var<private> high: array<u32, PER_LANE>;        // how many may be
var<private> split: array<u32, PER_LANE>;

@compute @workgroup_size(LANES)
fn main(@builtin(local_invocation_index) lane: u32) {
    if lane == 0u { atomicStore(&largest, 0u); }
    workgroupBarrier();
    for (var i = 0u; i < PER_LANE; i++) {
        let block = lane * PER_LANE + i;
        kept[i] = tokens_of(block);
        if kept[i] > 0u { atomicMax(&largest, order[block * BLOCK].y); }
    }
    workgroupBarrier();
    let top = atomicLoad(&largest);

    if params.top_k > 0u { keep(COUNT, vec2<u32>(params.top_k, 0u), lane); }
    if (params.filters & TOP_P) != 0u { keep(MASS, part_of(all_kept(MASS, lane)), lane); }
    for (var i = 0u; i < PER_LANE; i++) { kept[i] = first_without_min_p(lane * PER_LANE + i, kept[i], top); }
    let goal = random_below(all_kept(WEIGHT, lane));
    keep(WEIGHT, long_add(goal, ONE), lane);
    if lane == 0u { finish(~order[found.x * BLOCK + found.y].x, top); }
}

fn tokens_of(block: u32) -> u32 {
    if block >= BLOCKS { return 0u; }
    return min(params.vocabulary - block * BLOCK, BLOCK);
}

/// A measure of the first `count` tokens of a block.
fn measure(kind: u32, block: u32, count: u32) -> vec2<u32> {
    if count == 0u { return NOTHING; }
    if kind == COUNT { return vec2<u32>(count, 0u); }
    let both = weights[block * BLOCK + count - 1u];
    return select(both.zw, both.xy, kind == MASS);
}

fn all_kept(kind: u32, lane: u32) -> vec2<u32> {
    var own = NOTHING;
    for (var i = 0u; i < PER_LANE; i++) { own = long_add(own, measure(kind, lane * PER_LANE + i, kept[i])); }
    return sum_up_to(own, lane).all;
}

/// Keeps the tokens up to the one with which the measure reaches the goal, and leaves that in `found`.
fn keep(kind: u32, goal: vec2<u32>, lane: u32) {
    for (var i = 0u; i < PER_LANE; i++) {
        low[i] = 0u;
        high[i] = tokens_of(lane * PER_LANE + i);
    }
    var key = 0u;
    for (var bit = 0x80000000u; bit > 0u; bit >>= 1u) {
        let pivot = key | bit;
        var own = NOTHING;
        for (var i = 0u; i < PER_LANE; i++) {
            let block = lane * PER_LANE + i;
            split[i] = first_below(block, low[i], high[i], pivot);
            own = long_add(own, measure(kind, block, split[i]));
        }
        let reached = !long_less(sum_of_lanes(own, lane), goal);
        if reached { key = pivot; }
        for (var i = 0u; i < PER_LANE; i++) {
            if reached { high[i] = split[i]; } else { low[i] = split[i]; }
        }
    }

    // Between low and high are now the tokens with this very key.
    var above = NOTHING;
    var own = NOTHING;
    for (var i = 0u; i < PER_LANE; i++) {
        let block = lane * PER_LANE + i;
        let before = measure(kind, block, low[i]);
        above = long_add(above, before);
        own = long_add(own, long_subtract(measure(kind, block, high[i]), before));
    }
    above = sum_up_to(above, lane).all;
    if lane == 0u { found = NOTHING; }
    let equals = sum_up_to(own, lane);
    var sum = long_add(above, long_subtract(equals.through, own));
    for (var i = 0u; i < PER_LANE; i++) {
        let block = lane * PER_LANE + i;
        let before = long_subtract(sum, measure(kind, block, low[i]));
        let after = long_add(before, measure(kind, block, high[i]));
        if long_less(sum, goal) && !long_less(after, goal) {
            var start = low[i];
            var end = high[i] - 1u;
            while start < end {
                let middle = (start + end) / 2u;
                if long_less(long_add(before, measure(kind, block, middle + 1u)), goal) {
                    start = middle + 1u;
                } else {
                    end = middle;
                }
            }
            found = vec2<u32>(block, start);
        }
        sum = after;
    }
    workgroupBarrier();
    let last = found;
    for (var i = 0u; i < PER_LANE; i++) {
        let block = lane * PER_LANE + i;
        kept[i] = select(select(low[i], last.y + 1u, block == last.x), high[i], block < last.x);
    }
    workgroupBarrier();
}

/// How many tokens of a block have at least this key: at least `least`, and at most `most`.
fn first_below(block: u32, least: u32, most: u32, key: u32) -> u32 {
    // Most keys are far above those of a block, or far below: its ends tell.
    if least == most || order[block * BLOCK + least].y < key { return least; }
    if order[block * BLOCK + most - 1u].y >= key { return most; }
    var start = least;
    var end = most;
    while start < end {
        let middle = (start + end) / 2u;
        if order[block * BLOCK + middle].y >= key { start = middle + 1u; } else { end = middle; }
    }
    return start;
}

/// How many of the first tokens of a block min_p leaves.
fn first_without_min_p(block: u32, count: u32, top: u32) -> u32 {
    var start = 0u;
    var end = count;
    while start < end {
        let middle = (start + end) / 2u;
        if passes_min_p(order[block * BLOCK + middle].y, top) { start = middle + 1u; } else { end = middle; }
    }
    return start;
}
