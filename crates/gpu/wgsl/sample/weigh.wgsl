// weigh: the weight of every BLOCK tokens in a row, of those that min_p leaves.
//
// Work split   one workgroup serves a block. Each finds the largest of the maxima for itself.
// Reads        logits [vocabulary], maxima [MAXIMA]
// Writes       block_weights [blocks + 1], the last of which holds the largest key
// Constants    LANES, MAXIMA, BLOCK

@group(1) @binding(1) var<storage, read> logits: array<u32>;
@group(1) @binding(3) var<storage, read> maxima: array<vec2<u32>>;
@group(1) @binding(5) var<storage, read_write> block_weights: array<vec2<u32>>;

var<workgroup> largest: atomic<u32>;

@compute @workgroup_size(LANES)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    if lane == 0u { atomicStore(&largest, 0u); }
    workgroupBarrier();
    var most = 0u;
    for (var at = lane; at < MAXIMA; at += LANES) { most = max(most, maxima[at].y); }
    atomicMax(&largest, most);
    workgroupBarrier();
    let top = atomicLoad(&largest);

    var own = NOTHING;
    for (var at = lane; at < BLOCK; at += LANES) {
        let id = workgroup.x * BLOCK + at;
        if id < params.vocabulary {
            let key = key_of(logits[first_logit() + id]);
            if passes_min_p(key, top) { own = long_add(own, weight(key, top, params.temperature)); }
        }
    }
    let all = sum_of_lanes(own, lane);
    if lane == 0u {
        block_weights[workgroup.x] = all;
        if workgroup.x == 0u { block_weights[workgroups.x] = vec2<u32>(0u, top); }
    }
}
