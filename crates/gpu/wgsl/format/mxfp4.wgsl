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

// The doubled floats of four codes, one in each byte, as four signed bytes: all four at once, for the magnitudes
// 0 1 2 3 4 6 8 12 are the lower bits m of a code, to which a code from 4 on adds m & 3, and 7 two more.
fn doubled(codes: vec4<u32>) -> vec4<u32> {
    let more = codes & (((codes >> vec4<u32>(2u)) & vec4<u32>(0x01010101u)) * 3u);
    let most = more & (more >> vec4<u32>(1u));
    let magnitude = (codes & vec4<u32>(0x07070707u)) + more + (most << vec4<u32>(1u));
    let negative = magnitude & (((codes >> vec4<u32>(3u)) & vec4<u32>(0x01010101u)) * 255u);
    // Bytes are 128 too large while they are subtracted from, so that none borrows from its neighbour.
    let signs = vec4<u32>(0x80808080u);
    return (signs + magnitude - 2u * negative) ^ signs;
}

fn group_quants(row: u32, group: u32, word: u32) -> vec4<f32> {
    return vec4<f32>(unpack4xI8(doubled(vec4<u32>(nibble_word(row, group, word))).x));
}

fn chunk_scales(row: u32, chunk: u32) -> vec4<f32> {
    return group_scale(row, chunk).xyxy;
}

const WIDE_BYTES: bool = false;

fn chunk_bytes(row: u32, chunk: u32) -> Bytes {
    let codes = nibble_bytes(row, chunk);
    return Bytes(doubled(codes.even), doubled(codes.odd));
}

fn chunk_quants(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let bytes = chunk_bytes(row, chunk);
    return signed_bytes(bytes.even, bytes.odd);
}
