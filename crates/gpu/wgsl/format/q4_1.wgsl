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
    return vec4<f32>(unpack4xU8(nibble_word(row, group, word)));
}

fn chunk_scales(row: u32, chunk: u32) -> vec4<f32> {
    return group_scale(row, chunk).xyxy;
}

const WIDE_BYTES: bool = false;

fn chunk_bytes(row: u32, chunk: u32) -> Bytes { return nibble_bytes(row, chunk); }

fn chunk_quants(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let bytes = chunk_bytes(row, chunk);
    return unsigned_bytes(bytes.even, bytes.odd);
}
