// group_rows: the rows of a step by the experts they are routed to, in tiles that have one expert each.
//
// Work split   one workgroup writes the tiles of one expert (x). Each counts for all experts, which takes less time than
//              another dispatch. Lanes take runs of pairs in order, so that the pairs of an expert stay in order.
// Reads        routing [rows, 2 · USED]: experts, then their weights
// Writes       groups [tiles, 1 + TILE_ROWS]: a tile's expert, then its pairs of a row and a slot as row · USED + slot; NONE
//              for a tile without an expert, and for what an expert's pairs leave of its last tile
// Constants    LANES (a power of two), EXPERTS, USED, TILE_ROWS

struct Params { tiles: u32 }

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> routing: array<f32>;
@group(1) @binding(2) var<storage, read_write> groups: array<u32>;

// No expert, or no pair.
const NONE: u32 = 0xffffffffu;

const TILE_WORDS: u32 = 1u + TILE_ROWS;

// The pairs of each expert.
var<workgroup> counts: array<atomic<u32>, EXPERTS>;
// Of each lane and those before it: pairs of this workgroup's expert, and tiles of experts before it.
var<workgroup> sums: array<vec2<u32>, LANES>;

fn expert_of(pair: u32) -> u32 {
    return min(u32(routing[pair / USED * 2u * USED + pair % USED]), EXPERTS - 1u);
}

fn tiles_of(pairs: u32) -> u32 { return (pairs + TILE_ROWS - 1u) / TILE_ROWS; }

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let expert = workgroup.x;
    for (var e = lane; e < EXPERTS; e += LANES) { atomicStore(&counts[e], 0u); }
    workgroupBarrier();

    let pairs = step.rows * USED;
    let run = (pairs + LANES - 1u) / LANES;
    let first = min(lane * run, pairs);
    let end = min(first + run, pairs);
    var own = 0u;
    for (var pair = first; pair < end; pair++) {
        let chosen = expert_of(pair);
        atomicAdd(&counts[chosen], 1u);
        own += u32(chosen == expert);
    }
    workgroupBarrier();

    // Running sums over the lanes, by doubling.
    var sum = vec2<u32>(own, 0u);
    for (var e = lane; e < expert; e += LANES) { sum.y += tiles_of(atomicLoad(&counts[e])); }
    sums[lane] = sum;
    for (var distance = 1u; distance < LANES; distance *= 2u) {
        workgroupBarrier();
        if lane >= distance { sum += sums[lane - distance]; }
        workgroupBarrier();
        sums[lane] = sum;
    }
    workgroupBarrier();
    let count = sums[LANES - 1u].x;
    let first_tile = sums[LANES - 1u].y;
    let tiles = tiles_of(count);

    var place = sum.x - own;
    for (var pair = first; pair < end && place < sum.x; pair++) {
        if expert_of(pair) == expert {
            groups[(first_tile + place / TILE_ROWS) * TILE_WORDS + 1u + place % TILE_ROWS] = pair;
            place++;
        }
    }
    for (var rest = count + lane; rest < tiles * TILE_ROWS; rest += LANES) {
        groups[(first_tile + rest / TILE_ROWS) * TILE_WORDS + 1u + rest % TILE_ROWS] = NONE;
    }
    for (var tile = lane; tile < tiles; tile += LANES) { groups[(first_tile + tile) * TILE_WORDS] = expert; }
    // The last expert's workgroup knows which tiles are left.
    if expert == EXPERTS - 1u {
        for (var tile = first_tile + tiles + lane; tile < params.tiles; tile += LANES) {
            groups[tile * TILE_WORDS] = NONE;
        }
    }
}
