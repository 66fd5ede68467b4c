// q6_k: blocks of 256 signed six-bit quants; each 16 have a signed byte as scale, which one f16 number per
// block brings to size.
// Plane 0: low four bits, 2 words per group of 16. Word k has values 8k..8k+3 in the low nibbles of its
//          bytes and 8k+4..8k+7 in the high ones.
// Plane 1: 9 words per two blocks: their two f16 numbers, then 4 words of scales for each.
// Plane 2: high two bits, one word per group: value 4w+i at bits 6−2w and 7−2w of byte i, the upper of them
//          inverted against the bias of 32.
//
// A quant is read as the upper six bits of a signed byte, four times itself; the scale is divided by four to
// match, which is exact.

const GROUP: u32 = 16u;
const HAS_OFFSET: bool = false;

fn group_scale(row: u32, group: u32) -> vec2<f32> {
    let pair = 9u * (group >> 5u);
    let size = unpack2x16float(plane1(row, pair) >> (group & 16u)).x;
    let scale = unpack4xI8(plane1(row, pair + 1u + ((group >> 2u) & 7u)) >> (8u * (group & 3u))).x;
    return vec2<f32>(size * f32(scale) * 0.25, 0.0);
}

fn group_quants(row: u32, group: u32, word: u32) -> vec4<f32> {
    let nibbles = plane0(row, 2u * group + (word >> 1u)) >> (4u * (word & 1u));
    let high = plane2(row, group) << (2u * word);
    return vec4<f32>(unpack4xI8(((nibbles & 0x0f0f0f0fu) << 2u) | (high & 0xc0c0c0c0u)));
}

fn chunk_scales(row: u32, chunk: u32) -> vec4<f32> {
    let pair = 9u * (chunk >> 4u);
    let size = unpack2x16float(plane1(row, pair) >> ((2u * chunk) & 16u)).x * 0.25;
    let bytes = unpack4xI8(plane1(row, pair + 1u + ((chunk >> 1u) & 7u)) >> (16u * (chunk & 1u)));
    let scale = size * vec2<f32>(bytes.xy);
    return vec4<f32>(scale.x, 0.0, scale.y, 0.0);
}

const WIDE_BYTES: bool = false;

fn chunk_bytes(row: u32, chunk: u32) -> Bytes {
    let quad = plane0_quad(row, chunk);
    let high = plane2_pair(row, chunk).xxyy;
    let low = vec4<u32>(0x3c3c3c3cu);
    let top = vec4<u32>(0xc0c0c0c0u);
    return Bytes(
        ((quad << vec4<u32>(2u)) & low) | ((high << vec4<u32>(0u, 4u, 0u, 4u)) & top),
        ((quad >> vec4<u32>(2u)) & low) | ((high << vec4<u32>(2u, 6u, 2u, 6u)) & top));
}

fn chunk_quants(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let bytes = chunk_bytes(row, chunk);
    return signed_bytes(bytes.even, bytes.odd);
}
