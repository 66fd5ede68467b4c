// sum: sums of longs over the lanes of a workgroup, of which there are 256.

const_assert LANES == 256u;

var<workgroup> sums: array<vec2<u32>, LANES>;
var<workgroup> group_sums: array<vec2<u32>, 16>;

struct Sums {
    through: vec2<u32>,    // over the lanes up to this one
    all: vec2<u32>,        // over all lanes
}

/// The sum over all lanes.
fn sum_of_lanes(value: vec2<u32>, lane: u32) -> vec2<u32> {
    sums[lane] = value;
    workgroupBarrier();
    if lane < 16u {
        var sum = NOTHING;
        // Neighbours start at different banks.
        for (var i = 0u; i < 16u; i++) { sum = long_add(sum, sums[lane * 16u + ((i + lane) & 15u)]); }
        group_sums[lane] = sum;
    }
    workgroupBarrier();
    var all = NOTHING;
    for (var i = 0u; i < 16u; i++) { all = long_add(all, group_sums[i]); }
    return all;
}

/// The sums over the lanes up to each.
fn sum_up_to(value: vec2<u32>, lane: u32) -> Sums {
    let all = sum_of_lanes(value, lane);
    let group = lane / 16u;
    var through = NOTHING;
    for (var i = 0u; i < group; i++) { through = long_add(through, group_sums[i]); }
    for (var i = group * 16u; i <= lane; i++) { through = long_add(through, sums[i]); }
    // Whoever adds up next writes where others may still be reading.
    workgroupBarrier();
    return Sums(through, all);
}
