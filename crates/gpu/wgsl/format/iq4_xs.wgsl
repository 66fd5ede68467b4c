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

// The levels −127 −104 −83 −65 −49 −35 −22 −10 1 13 25 38 53 69 89 113: this quartic passes within 0.44 of
// every one of them, so rounding gives them exactly. Arithmetic, because every lane would index a table at
// another place.
fn curve_level(code: vec4<f32>) -> vec4<f32> {
    return round((((0.001586043 * code + 0.03108644) * code - 1.371927) * code + 24.17383) * code - 126.567);
}

fn group_quants(row: u32, group: u32, word: u32) -> vec4<f32> {
    let nibbles = plane0(row, 4u * group + (word >> 1u)) >> (4u * (word & 1u));
    return curve_level(vec4<f32>(unpack4xU8(nibbles & 0x0f0f0f0fu)));
}

fn chunk_scales(row: u32, chunk: u32) -> vec4<f32> {
    return group_scale(row, chunk).xyxy;
}

fn chunk_quants(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let quad = plane0_quad(row, chunk);
    let lower = vec4<u32>(0x0f0f0f0fu);
    let codes = unsigned_bytes(quad & lower, (quad >> vec4<u32>(4u)) & lower);
    return array<vec4<f32>, 8>(
        curve_level(codes[0]), curve_level(codes[1]), curve_level(codes[2]), curve_level(codes[3]),
        curve_level(codes[4]), curve_level(codes[5]), curve_level(codes[6]), curve_level(codes[7]));
}
