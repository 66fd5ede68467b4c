// scores_subgroup: what attend_row adds up over lanes, by exchanges within subgroups.
//
// Lanes are counted subgroup by subgroup, and subgroups are full: a GPU where that is not so fails its self-test.

// Lanes whose squares are added up before the others'.
const FOLD: u32 = min(SUBGROUP, TEAM);

const_assert PARTS >= 8u;
const_assert PARTS <= SUBGROUP && PARTS <= 64u;
const_assert FOLD >= 8u && FOLD <= 64u;

// The sum over FOLD lanes.
fn fold(value: f32, lane: u32) -> f32 {
    var total = value + subgroupShuffleXor(value, 1u);
    total += subgroupShuffleXor(total, 2u);
    total += subgroupShuffleXor(total, 4u);
    if FOLD > 8u { total += subgroupShuffleXor(total, 8u); }
    if FOLD > 16u { total += subgroupShuffleXor(total, 16u); }
    if FOLD > 32u { total += subgroupShuffleXor(total, 32u); }
    return total;
}

// Scores of up to eight keys, of which each of PARTS lanes has a part. Lanes first trade the parts of half their keys
// against their neighbours' of the other half: sixteen exchanges instead of forty.
fn scores_of(parts: mat2x4<f32>, lane: u32) -> mat2x4<f32> {
    if KEYS <= 4u { return mat2x4<f32>(scores_of_four(parts[0], lane), vec4<f32>()); }
    let second = (lane & 4u) != 0u;
    let kept = select(parts[0], parts[1], second);
    let given = select(parts[1], parts[0], second);
    let mine = scores_of_four(kept + subgroupShuffleXor(given, 4u), lane);
    let other = subgroupShuffleXor(mine, 4u);
    return mat2x4<f32>(select(mine, other, second), select(other, mine, second));
}

fn scores_of_four(parts: vec4<f32>, lane: u32) -> vec4<f32> {
    let second = (lane & 2u) != 0u;
    let odd = (lane & 1u) != 0u;
    let two = select(parts.xy, parts.zw, second) + subgroupShuffleXor(select(parts.zw, parts.xy, second), 2u);
    var mine = select(two.x, two.y, odd) + subgroupShuffleXor(select(two.y, two.x, odd), 1u);
    // With eight keys these lanes have other ones.
    if KEYS <= 4u { mine += subgroupShuffleXor(mine, 4u); }
    if PARTS > 8u { mine += subgroupShuffleXor(mine, 8u); }
    if PARTS > 16u { mine += subgroupShuffleXor(mine, 16u); }
    if PARTS > 32u { mine += subgroupShuffleXor(mine, 32u); }
    let next = subgroupShuffleXor(mine, 1u);
    let pair = select(vec2<f32>(mine, next), vec2<f32>(next, mine), odd);
    let others = subgroupShuffleXor(pair, 2u);
    return select(vec4<f32>(pair, others), vec4<f32>(others, pair), second);
}
