// q4_0: groups of 32 signed four-bit quants with one f16 scale.
// Plane 0: 4 words per group. Word k has values 8k..8k+3 in the low nibbles of its bytes and 8k+4..8k+7
//          in the high ones, in two's complement.
// Plane 1: scales, two to a word.
//
// A quant is read as the upper half of a signed byte, sixteen times itself, so that no bias remains to be
// subtracted; the scale is divided by sixteen to match, which is exact.

const GROUP: u32 = 32u;
const HAS_OFFSET: bool = false;

fn group_scale(row: u32, group: u32) -> vec2<f32> {
    let scale = unpack2x16float(plane1(row, group >> 1u) >> (16u * (group & 1u))).x;
    return vec2<f32>(scale * 0.0625, 0.0);
}

fn group_quants(row: u32, group: u32, word: u32) -> vec4<f32> {
    let nibbles = plane0(row, 4u * group + (word >> 1u)) << (4u - 4u * (word & 1u));
    return vec4<f32>(unpack4xI8(nibbles & 0xf0f0f0f0u));
}

fn chunk_scales(row: u32, chunk: u32) -> vec4<f32> {
    return group_scale(row, chunk).xyxy;
}

const WIDE_BYTES: bool = false;

fn chunk_bytes(row: u32, chunk: u32) -> Bytes {
    let quad = plane0_quad(row, chunk);
    let upper = vec4<u32>(0xf0f0f0f0u);
    return Bytes((quad << vec4<u32>(4u)) & upper, quad & upper);
}

fn chunk_quants(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let bytes = chunk_bytes(row, chunk);
    return signed_bytes(bytes.even, bytes.odd);
}
