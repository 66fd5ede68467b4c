// q4_1: groups of 32 four-bit quants with an f16 scale and an f16 offset.
// Plane 0: 4 words per group. Word k has values 8k..8k+3 in the low nibbles of its bytes and 8k+4..8k+7
//          in the high ones.
// Plane 1: one word per group, scale and offset.

const GROUP: u32 = 32u;
const HAS_OFFSET: bool = true;

fn group_scale(row: u32, group: u32) -> vec2<f32> {
    return unpack2x16float(plane1(row, group));
}

fn group_quants(row: u32, group: u32, word: u32) -> vec4<f32> {
    let nibbles = plane0(row, 4u * group + (word >> 1u)) >> (4u * (word & 1u));
    return vec4<f32>(unpack4xU8(nibbles & 0x0f0f0f0fu));
}

fn chunk_scales(row: u32, chunk: u32) -> vec4<f32> {
    return group_scale(row, chunk).xyxy;
}

const WIDE_BYTES: bool = false;

fn chunk_bytes(row: u32, chunk: u32) -> Bytes {
    let quad = plane0_quad(row, chunk);
    let lower = vec4<u32>(0x0f0f0f0fu);
    return Bytes(quad & lower, (quad >> vec4<u32>(4u)) & lower);
}

fn chunk_quants(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let bytes = chunk_bytes(row, chunk);
    return unsigned_bytes(bytes.even, bytes.odd);
}
