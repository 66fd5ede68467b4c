// workgroup: sums and maxima over the lanes of a workgroup, in two rounds of sixteen. Needs no subgroups.

const_assert LANES <= 256u;

var<workgroup> lanes: array<f32, LANES>;
var<workgroup> rounds: array<f32, 16>;

fn workgroup_sum(value: f32, lane: u32) -> f32 {
    lanes[lane] = value;
    workgroupBarrier();
    // Each of the first lanes adds every sixteenth value: neighbours read neighbours.
    if lane < 16u {
        var sum = 0.0;
        for (var i = lane; i < LANES; i += 16u) { sum += lanes[i]; }
        rounds[lane] = sum;
    }
    workgroupBarrier();
    var total = 0.0;
    for (var i = 0u; i < 16u; i++) { total += rounds[i]; }
    workgroupBarrier();
    return total;
}

fn workgroup_max(value: f32, lane: u32) -> f32 {
    lanes[lane] = value;
    workgroupBarrier();
    if lane < 16u {
        var most = lanes[lane];
        for (var i = lane + 16u; i < LANES; i += 16u) { most = max(most, lanes[i]); }
        rounds[lane] = most;
    }
    workgroupBarrier();
    var most = rounds[0];
    for (var i = 1u; i < 16u; i++) { most = max(most, rounds[i]); }
    workgroupBarrier();
    return most;
}
