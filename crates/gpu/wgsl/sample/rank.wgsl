// rank: the order of tokens by logit, and of equal logits by id.
//
// A key is a word that is larger for a larger logit. A rank is a long: the key above the id's complement. It is larger
// for a token that comes earlier, and no two tokens have the same. A logit of the model that is infinite or not a number
// has the largest key, so that a maximum tells whether there is one. Such logits are known by their bits alone, because
// WGSL lets a compiler believe that there are none.

const NOT_FINITE: u32 = 0xffffffffu;
const CERTAIN: u32 = 0xff800000u;         // above all finite logits
const IMPOSSIBLE: u32 = 0x007fffffu;      // of a suppressed token, below all finite logits
// The bits that `adjust` gives a suppressed token in place of −∞, which a model's own logit could be. They are those of a
// signalling NaN, which arithmetic never gives.
const SUPPRESSED: u32 = 0xff9e3779u;

fn key_of(bits: u32) -> u32 {
    if (bits & 0x7f800000u) == 0x7f800000u { return select(NOT_FINITE, IMPOSSIBLE, bits == SUPPRESSED); }
    // The two zeros are equal.
    if bits == 0x80000000u { return 0x80000000u; }
    return select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u);
}

fn logit_of(key: u32) -> f32 {
    return bitcast<f32>(select(~key, key & 0x7fffffffu, (key & 0x80000000u) != 0u));
}

fn rank_of(bits: u32, id: u32) -> vec2<u32> {
    return vec2<u32>(~id, key_of(bits));
}
