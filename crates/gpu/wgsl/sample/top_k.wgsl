// top_k: draws from the tokens first in rank, of which top_k, top_p and min_p keep no more than CAPACITY.
//
// Work split   one workgroup. Between the maxima it looks for a rank that at least top_k of them reach and few more;
//              gathers the tokens that reach it, from the groups whose maxima do; sorts them; and keeps the first.
// Reads        maxima [MAXIMA], logits [vocabulary]        Writes   state, tokens, recent, seen; gathered [vocabulary]
// Constants    LANES, DEPTH, MAXIMA, CAPACITY

@group(1) @binding(1) var<storage, read> logits: array<u32>;
@group(1) @binding(3) var<storage, read> maxima: array<vec2<u32>>;
@group(1) @binding(4) var<storage, read_write> gathered: array<vec2<u32>>;

const LOWEST = vec2<u32>(0u, IMPOSSIBLE + 1u);
const NEAR: u32 = 12u;              // rounds in which the middle is that of the logits
const ROUNDS: u32 = NEAR + 66u;     // and then that of the ranks: 64 bits can be halved as often
const EACH: u32 = CAPACITY / LANES;
const AHEAD: u32 = 8u;              // logits that a lane asks for before it looks at the first
const FIRSTS: u32 = MAXIMA / LANES;

var<workgroup> groups: array<u32, CAPACITY>;
var<workgroup> reached: array<atomic<u32>, ROUNDS>;
var<workgroup> smallest: atomic<u32>;
var<workgroup> largest: atomic<u32>;
var<workgroup> group_count: atomic<u32>;
var<workgroup> count: atomic<u32>;
var<workgroup> shared_word: u32;
var<workgroup> kept: u32;
var<workgroup> token: u32;

var<private> firsts: array<vec2<u32>, FIRSTS>;    // the maxima of a lane

@compute @workgroup_size(LANES)
fn main(@builtin(local_invocation_index) lane: u32) {
    if lane == 0u {
        atomicStore(&smallest, 0xffffffffu);
        atomicStore(&largest, 0u);
        atomicStore(&group_count, 0u);
        atomicStore(&count, 0u);
        token = 0u;
    }
    workgroupBarrier();

    var least = 0xffffffffu;
    var most = 0u;
    for (var i = 0u; i < FIRSTS; i++) {
        firsts[i] = maxima[i * LANES + lane];
        least = min(least, firsts[i].y);
        most = max(most, firsts[i].y);
    }
    atomicMin(&smallest, least);
    atomicMax(&largest, most);
    workgroupBarrier();
    let least_key = max(atomicLoad(&smallest), IMPOSSIBLE + 1u);
    let highest = vec2<u32>(0xffffffffu, atomicLoad(&largest));
    // A few groups more cost less to look at than to tell apart.
    let room = min(params.top_k + params.top_k / 4u + 32u, CAPACITY);
    let enough = threshold(false, 0u, room, vec2<u32>(0u, least_key), highest, lane);

    for (var i = 0u; i < FIRSTS; i++) {
        if !long_less(firsts[i], enough) { groups[atomicAdd(&group_count, 1u)] = i * LANES + lane; }
    }
    workgroupBarrier();
    gather(atomicLoad(&group_count) * DEPTH, enough, lane);
    storageBarrier();
    workgroupBarrier();

    var found = uniform_word(atomicLoad(&count), lane);
    if found > CAPACITY {
        // Many in few groups. Rare, because neighbours are in different groups.
        let fewer = threshold(true, found, CAPACITY, enough, highest, lane);
        if lane == 0u { atomicStore(&count, 0u); }
        workgroupBarrier();
        for (var at = lane; at < found; at += LANES) {
            let rank = gathered[at];
            if !long_less(rank, fewer) { candidates[atomicAdd(&count, 1u)] = rank; }
        }
        workgroupBarrier();
        found = uniform_word(atomicLoad(&count), lane);
    }

    var size = 2u;
    while size < found { size *= 2u; }
    for (var at = found + lane; at < size; at += LANES) { candidates[at] = NOTHING; }
    sort(size, lane);
    draw(min(found, params.top_k), lane);
    if lane == 0u { finish(token, candidates[0].y); }
}

/// The same word in all lanes, as the compiler can tell too.
fn uniform_word(word: u32, lane: u32) -> u32 {
    if lane == 0u { shared_word = word; }
    return workgroupUniformLoad(&shared_word);
}

/// A rank that at least top_k ranks reach, and at most `room`, if that many reach `least`. Otherwise the lowest there is:
/// not even all maxima are enough then, and every token is to be looked at. The ranks are the maxima, or the first
/// `length` of those gathered.
fn threshold(second: bool, length: u32, room: u32, least: vec2<u32>, most: vec2<u32>, lane: u32) -> vec2<u32> {
    if lane < ROUNDS { atomicStore(&reached[lane], 0u); }
    workgroupBarrier();
    var low = least;
    var high = most;
    var pivot = least;
    for (var round = 0u; round < ROUNDS; round++) {
        var mine = 0u;
        if second {
            for (var at = lane; at < length; at += LANES) { mine += select(1u, 0u, long_less(gathered[at], pivot)); }
        } else {
            for (var i = 0u; i < FIRSTS; i++) { mine += select(1u, 0u, long_less(firsts[i], pivot)); }
        }
        atomicAdd(&reached[round], mine);
        workgroupBarrier();
        let all = atomicLoad(&reached[round]);
        if all >= params.top_k { low = pivot; } else { high = long_subtract(pivot, ONE); }
        if round == 0u && all < params.top_k { low = LOWEST; }
        let fits = all <= room && (all >= params.top_k || round == 0u);
        if uniform_word(select(0u, 1u, fits || !long_less(low, high)), lane) == 1u { break; }
        pivot = between(low, high, round < NEAR);
    }
    return low;
}

/// A rank above `low` and not above `high`, in the middle of them: of their logits, which finds a number of tokens
/// soonest; or of their bits, which finds everything in the end.
fn between(low: vec2<u32>, high: vec2<u32>, near: bool) -> vec2<u32> {
    if near && high.y < CERTAIN {
        let key = key_of(bitcast<u32>(0.5 * logit_of(low.y) + 0.5 * logit_of(high.y)));
        if key > low.y && key <= high.y { return vec2<u32>(0u, key); }
    }
    let span = long_subtract(high, low);
    let half = vec2<u32>((span.x >> 1u) | (span.y << 31u), span.y >> 1u);
    return long_add(low, long_add(half, vec2<u32>(span.x & 1u, 0u)));
}

/// Gathers the tokens of the chosen groups that reach `enough`.
fn gather(length: u32, enough: vec2<u32>, lane: u32) {
    for (var start = lane; start < length; start += AHEAD * LANES) {
        var ranks: array<vec2<u32>, AHEAD>;
        for (var i = 0u; i < AHEAD; i++) {
            let at = start + i * LANES;
            ranks[i] = NOTHING;
            if at < length {
                let group = groups[at / DEPTH];
                let id = group / LANES * (LANES * DEPTH) + at % DEPTH * LANES + group % LANES;
                if id < params.vocabulary { ranks[i] = rank_of(logits[first_logit() + id], id); }
            }
        }
        for (var i = 0u; i < AHEAD; i++) {
            if !long_less(ranks[i], enough) {
                let at = atomicAdd(&count, 1u);
                gathered[at] = ranks[i];
                if at < CAPACITY { candidates[at] = ranks[i]; }
            }
        }
    }
}

/// Draws from the first `first` candidates what top_p and min_p leave of them. A lane serves EACH in a row.
fn draw(first: u32, lane: u32) {
    let top = candidates[0].y;
    if lane == 0u { kept = first; }
    if (params.filters & TOP_P) != 0u {
        var own = NOTHING;
        for (var i = 0u; i < EACH; i++) {
            let at = lane * EACH + i;
            if at < first { own = long_add(own, weight(candidates[at].y, top, 1.0)); }
        }
        let mass = sum_up_to(own, lane);
        let goal = part_of(mass.all);
        var sum = long_subtract(mass.through, own);
        if long_less(sum, goal) && !long_less(mass.through, goal) {
            for (var i = 0u; i < EACH; i++) {
                let at = lane * EACH + i;
                let before = sum;
                if at < first { sum = long_add(sum, weight(candidates[at].y, top, 1.0)); }
                if long_less(before, goal) && !long_less(sum, goal) { kept = at + 1u; }
            }
        }
    }
    workgroupBarrier();

    let last = kept;
    var own = NOTHING;
    var weights: array<vec2<u32>, EACH>;
    for (var i = 0u; i < EACH; i++) {
        let at = lane * EACH + i;
        weights[i] = NOTHING;
        if at < last && passes_min_p(candidates[at].y, top) {
            weights[i] = weight(candidates[at].y, top, params.temperature);
        }
        own = long_add(own, weights[i]);
    }
    let all = sum_up_to(own, lane);
    let goal = random_below(all.all);
    var sum = long_subtract(all.through, own);
    for (var i = 0u; i < EACH; i++) {
        let before = sum;
        sum = long_add(sum, weights[i]);
        if !long_less(goal, before) && long_less(goal, sum) { token = ~candidates[lane * EACH + i].x; }
    }
    workgroupBarrier();
}
