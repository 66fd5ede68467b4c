// parts_subgroup: sums over the PARTS lanes that share an output, all of one subgroup.

const_assert PARTS <= SUBGROUP;

fn part_sum(value: vec2<f32>, lane: u32) -> vec2<f32> {
    var total = value;
    for (var distance = PARTS / 2u; distance > 0u; distance /= 2u) {
        total += subgroupShuffleXor(total, distance);
    }
    return total;
}
