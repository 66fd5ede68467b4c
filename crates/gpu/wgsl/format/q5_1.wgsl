// q5_1: groups of 32 five-bit quants with an f16 scale and an f16 offset.
// Plane 0: low four bits, 4 words per group. Word k has values 8k..8k+3 in the low nibbles of its bytes and
//          8k+4..8k+7 in the high ones.
// Plane 1: one word per group, scale and offset.
// Plane 2: fifth bits, one word per group: value 4w+i at bit 7−w of byte i.
//
// A quant is read as the upper five bits of a byte, eight times itself, which saves a shift; the scale is
// divided by eight to match, which is exact.

const GROUP: u32 = 32u;
const HAS_OFFSET: bool = true;

fn group_scale(row: u32, group: u32) -> vec2<f32> {
    return unpack2x16float(plane1(row, group)) * vec2<f32>(0.125, 1.0);
}

fn group_quants(row: u32, group: u32, word: u32) -> vec4<f32> {
    let nibbles = plane0(row, 4u * group + (word >> 1u)) >> (4u * (word & 1u));
    let fifth = plane2(row, group) << word;
    return vec4<f32>(unpack4xU8(((nibbles & 0x0f0f0f0fu) << 3u) | (fifth & 0x80808080u)));
}

fn chunk_scales(row: u32, chunk: u32) -> vec4<f32> {
    return group_scale(row, chunk).xyxy;
}

// Bytes that fill all eight bits, for whoever reads them as signed.
const WIDE_BYTES: bool = true;

fn chunk_bytes(row: u32, chunk: u32) -> Bytes {
    let quad = plane0_quad(row, chunk);
    let fifth = vec4<u32>(plane2(row, chunk));
    let low = vec4<u32>(0x78787878u);
    let top = vec4<u32>(0x80808080u);
    return Bytes(
        ((quad << vec4<u32>(3u)) & low) | ((fifth << vec4<u32>(0u, 2u, 4u, 6u)) & top),
        ((quad >> vec4<u32>(1u)) & low) | ((fifth << vec4<u32>(1u, 3u, 5u, 7u)) & top));
}

fn chunk_quants(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let bytes = chunk_bytes(row, chunk);
    return unsigned_bytes(bytes.even, bytes.odd);
}
