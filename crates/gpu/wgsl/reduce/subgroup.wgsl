// subgroup: sums and maxima over the lanes of a workgroup: within subgroups first, then over what these left.
//
// Lanes are counted subgroup by subgroup, and subgroups are full: a GPU where that is not so fails its self-test.

var<workgroup> subtotals: array<f32, LANES / SUBGROUP>;

fn workgroup_sum(value: f32, lane: u32) -> f32 {
    let own = subgroupAdd(value);
    workgroupBarrier();
    if lane % SUBGROUP == 0u { subtotals[lane / SUBGROUP] = own; }
    workgroupBarrier();
    var total = 0.0;
    for (var i = 0u; i < LANES / SUBGROUP; i++) { total += subtotals[i]; }
    return total;
}

fn workgroup_max(value: f32, lane: u32) -> f32 {
    let own = subgroupMax(value);
    workgroupBarrier();
    if lane % SUBGROUP == 0u { subtotals[lane / SUBGROUP] = own; }
    workgroupBarrier();
    var most = subtotals[0];
    for (var i = 1u; i < LANES / SUBGROUP; i++) { most = max(most, subtotals[i]); }
    return most;
}
