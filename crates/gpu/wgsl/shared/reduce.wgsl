// reduce: sums and maxima over the lanes of a workgroup, by halving. Needs no subgroups.

var<workgroup> lanes: array<f32, LANES>;

fn workgroup_sum(value: f32, lane: u32) -> f32 {
    lanes[lane] = value;
    for (var half = LANES / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if lane < half { lanes[lane] += lanes[lane + half]; }
    }
    workgroupBarrier();
    let total = lanes[0];
    workgroupBarrier();
    return total;
}

fn workgroup_max(value: f32, lane: u32) -> f32 {
    lanes[lane] = value;
    for (var half = LANES / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if lane < half { lanes[lane] = max(lanes[lane], lanes[lane + half]); }
    }
    workgroupBarrier();
    let most = lanes[0];
    workgroupBarrier();
    return most;
}
