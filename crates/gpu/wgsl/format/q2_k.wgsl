// q2_k: blocks of 256 two-bit quants; each 16 have a four-bit scale and a four-bit minimum, which two f16
// numbers per block bring to size.
// Plane 0: one word per group of 16: value 4w+i at bits 2w and 2w+1 of byte i.
// Plane 1: 5 words per block: the f16 pair (for scales, for minimums), then a byte per group, its scale in
//          the low nibble and its minimum in the high one.

const GROUP: u32 = 16u;
const HAS_OFFSET: bool = true;

fn group_scale(row: u32, group: u32) -> vec2<f32> {
    let at = 5u * (group >> 4u);
    let sizes = unpack2x16float(plane1(row, at));
    let byte = plane1(row, at + 1u + ((group >> 2u) & 3u)) >> (8u * (group & 3u));
    return sizes * vec2<f32>(f32(byte & 15u), -f32((byte >> 4u) & 15u));
}

fn group_quants(row: u32, group: u32, word: u32) -> vec4<f32> {
    return vec4<f32>(unpack4xU8((plane0(row, group) >> (2u * word)) & 0x03030303u));
}

fn chunk_scales(row: u32, chunk: u32) -> vec4<f32> {
    let at = 5u * (chunk >> 3u);
    let sizes = unpack2x16float(plane1(row, at));
    let bytes = plane1(row, at + 1u + ((chunk >> 1u) & 3u)) >> (16u * (chunk & 1u));
    let scale = vec2<f32>(unpack4xU8(bytes & 0x0f0fu).xy);
    let minimum = vec2<f32>(unpack4xU8((bytes >> 4u) & 0x0f0fu).xy);
    return sizes.xyxy * vec4<f32>(scale.x, -minimum.x, scale.y, -minimum.y);
}

const WIDE_BYTES: bool = false;

fn chunk_bytes(row: u32, chunk: u32) -> Bytes {
    let groups = plane0_pair(row, chunk).xxyy;
    let lowest = vec4<u32>(0x03030303u);
    return Bytes(
        (groups >> vec4<u32>(0u, 4u, 0u, 4u)) & lowest,
        (groups >> vec4<u32>(2u, 6u, 2u, 6u)) & lowest);
}

fn chunk_quants(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let bytes = chunk_bytes(row, chunk);
    return unsigned_bytes(bytes.even, bytes.odd);
}
