// mxfp4: groups of 32 four-bit floats (sign, two bits of exponent, one of fraction) with a power of two.
// Plane 0: 4 words per group. Word k has codes 8k..8k+3 in the low nibbles of its bytes and 8k+4..8k+7 in
//          the high ones.
// Plane 1: one byte e per group, four to a word.
//
// Floats are read doubled, which makes them whole numbers; the scale is therefore 2^(e−128).

const GROUP: u32 = 32u;
const HAS_OFFSET: bool = false;

fn group_scale(row: u32, group: u32) -> vec2<f32> {
    let e = (plane1(row, group >> 2u) >> (8u * (group & 3u))) & 255u;
    // The two smallest lie below the normal numbers, where the exponent field is zero.
    let bits = select((e - 1u) << 23u, 0x200000u << (e & 1u), e < 2u);
    return vec2<f32>(bitcast<f32>(bits), 0.0);
}

fn group_quants(row: u32, group: u32, word: u32) -> vec4<f32> {
    let nibbles = plane0(row, 4u * group + (word >> 1u)) >> (4u * (word & 1u));
    let code = unpack4xU8(nibbles & 0x0f0f0f0fu);
    // The eight magnitudes 0 1 2 3 4 6 8 12, a nibble each.
    let shift = (code & vec4<u32>(7u)) << vec4<u32>(2u);
    let magnitude = vec4<f32>((vec4<u32>(0xc8643210u) >> shift) & vec4<u32>(15u));
    return select(magnitude, -magnitude, code > vec4<u32>(7u));
}
