// accumulate: in each sorted block, the weight up to each token: at a temperature of one, which top_p goes by, and at
// that of the options, which the draw goes by.
//
// Work split   one workgroup serves a block; a lane serves EACH tokens in a row. Each finds the largest key for itself.
// Reads        order [BLOCKS · BLOCK]        Writes   weights [BLOCKS · BLOCK]
// Constants    LANES, BLOCK, BLOCKS

@group(1) @binding(4) var<storage, read> order: array<vec2<u32>>;
@group(1) @binding(6) var<storage, read_write> weights: array<vec4<u32>>;

const EACH: u32 = BLOCK / LANES;

var<workgroup> largest: atomic<u32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    if lane == 0u { atomicStore(&largest, 0u); }
    workgroupBarrier();
    var most = 0u;
    for (var at = lane; at < BLOCKS; at += LANES) { most = max(most, order[at * BLOCK].y); }
    atomicMax(&largest, most);
    workgroupBarrier();
    let top = atomicLoad(&largest);

    let first = workgroup.x * BLOCK + lane * EACH;
    var one: array<vec2<u32>, EACH>;
    var other: array<vec2<u32>, EACH>;
    var own_one = NOTHING;
    var own_other = NOTHING;
    for (var i = 0u; i < EACH; i++) {
        let key = order[first + i].y;
        one[i] = NOTHING;
        other[i] = NOTHING;
        if key > IMPOSSIBLE {
            one[i] = weight(key, top, 1.0);
            other[i] = weight(key, top, params.temperature);
        }
        own_one = long_add(own_one, one[i]);
        own_other = long_add(own_other, other[i]);
    }
    var sum_one = long_subtract(sum_up_to(own_one, lane).through, own_one);
    var sum_other = long_subtract(sum_up_to(own_other, lane).through, own_other);
    for (var i = 0u; i < EACH; i++) {
        sum_one = long_add(sum_one, one[i]);
        sum_other = long_add(sum_other, other[i]);
        weights[first + i] = vec4<u32>(sum_one, sum_other);
    }
}
