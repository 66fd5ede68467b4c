// iq4_nl: groups of 32 four-bit codes, which name levels of a fixed curve, with one f16 scale.
// Plane 0: 4 words per group. Word k has codes 8k..8k+3 in the low nibbles of its bytes and 8k+4..8k+7 in
//          the high ones.
// Plane 1: scales, two to a word.

const GROUP: u32 = 32u;
const HAS_OFFSET: bool = false;

fn group_scale(row: u32, group: u32) -> vec2<f32> {
    return vec2<f32>(unpack2x16float(plane1(row, group >> 1u) >> (16u * (group & 1u))).x, 0.0);
}

fn group_quants(row: u32, group: u32, word: u32) -> vec4<f32> {
    return curve_level(vec4<f32>(unpack4xU8(nibble_word(row, group, word))));
}

fn chunk_scales(row: u32, chunk: u32) -> vec4<f32> {
    return group_scale(row, chunk).xyxy;
}

fn chunk_quants(row: u32, chunk: u32) -> array<vec4<f32>, 8> { return curve_levels(row, chunk); }
