// parts_workgroup: sums over the PARTS lanes that share an output, through workgroup memory.

var<workgroup> parts: array<vec2<f32>, LANES + LANES / PARTS>;

// The first lane of each output gets the sum.
fn part_sum(value: vec2<f32>, lane: u32) -> vec2<f32> {
    // One more than there are, so that the readers are at different banks.
    let first = lane / PARTS * (PARTS + 1u);
    workgroupBarrier();
    parts[first + lane % PARTS] = value;
    workgroupBarrier();
    var total = vec2<f32>();
    if lane % PARTS == 0u {
        for (var i = 0u; i < PARTS; i++) { total += parts[first + i]; }
    }
    return total;
}
