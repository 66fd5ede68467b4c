// iq4_xs: blocks of 256 four-bit codes, which name levels of a fixed curve; each 32 have a six-bit scale,
// biased by 32, which one f16 number per block brings to size.
// Plane 0: 4 words per group of 32. Word k has codes 8k..8k+3 in the low nibbles of its bytes and
//          8k+4..8k+7 in the high ones.
// Plane 1: 2 words per block: the f16 number and, above it, the upper two bits of the eight scales; then
//          their lower four bits.

const GROUP: u32 = 32u;
const HAS_OFFSET: bool = false;

fn group_scale(row: u32, group: u32) -> vec2<f32> {
    let block = plane1_pair(row, group >> 3u);
    let k = group & 7u;
    let low = (block.y >> (4u * k)) & 15u;
    let high = (block.x >> (16u + 2u * k)) & 3u;
    return vec2<f32>(unpack2x16float(block.x).x * f32(i32(low | (high << 4u)) - 32), 0.0);
}

fn group_quants(row: u32, group: u32, word: u32) -> vec4<f32> {
    return curve_level(vec4<f32>(unpack4xU8(nibble_word(row, group, word))));
}

fn chunk_scales(row: u32, chunk: u32) -> vec4<f32> {
    return group_scale(row, chunk).xyxy;
}

fn chunk_quants(row: u32, chunk: u32) -> array<vec4<f32>, 8> { return curve_levels(row, chunk); }
