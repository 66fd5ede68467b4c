// q5_0: groups of 32 signed five-bit quants with one f16 scale.
// Plane 0: low four bits, 4 words per group. Word k has values 8k..8k+3 in the low nibbles of its bytes and
//          8k+4..8k+7 in the high ones.
// Plane 1: scales, two to a word.
// Plane 2: fifth bits, one word per group: value 4w+i at bit 7−w of byte i, inverted.
//
// Inverting the fifth bit turns the bias of 16 into two's complement. A quant is read as the upper five bits
// of a signed byte, eight times itself; the scale is divided by eight to match, which is exact.

const GROUP: u32 = 32u;
const HAS_OFFSET: bool = false;

fn group_scale(row: u32, group: u32) -> vec2<f32> {
    let scale = unpack2x16float(plane1(row, group >> 1u) >> (16u * (group & 1u))).x;
    return vec2<f32>(scale * 0.125, 0.0);
}

fn group_quants(row: u32, group: u32, word: u32) -> vec4<f32> {
    return vec4<f32>(unpack4xI8(five_bit_word(row, group, word)));
}

fn chunk_scales(row: u32, chunk: u32) -> vec4<f32> {
    return group_scale(row, chunk).xyxy;
}

const WIDE_BYTES: bool = false;

fn chunk_bytes(row: u32, chunk: u32) -> Bytes { return five_bit_bytes(row, chunk); }

fn chunk_quants(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let bytes = chunk_bytes(row, chunk);
    return signed_bytes(bytes.even, bytes.odd);
}
