// q5_k: blocks of 256 five-bit quants; each 32 have a six-bit scale and a six-bit minimum, which two f16
// numbers per block bring to size.
// Plane 0: low four bits, 4 words per group of 32. Word k has values 8k..8k+3 in the low nibbles of its
//          bytes and 8k+4..8k+7 in the high ones.
// Plane 1: 4 words per block: the f16 pair (for scales, for minimums), then 3 words that hold scale
//          and minimum of group k: the scale and, above it, the lower two bits of the minimum in byte k%4
//          of word k/4; the upper four bits of the minimum in byte k%4 of word 2, in its high half for k ≥ 4.
// Plane 2: fifth bits, one word per group: value 4w+i at bit 7−w of byte i.
//
// A quant is read as the upper five bits of a byte, eight times itself, which saves a shift; the scale is
// divided by eight to match, which is exact.

const GROUP: u32 = 32u;
const HAS_OFFSET: bool = true;

fn group_scale(row: u32, group: u32) -> vec2<f32> {
    let block = plane1_quad(row, group >> 3u);
    let byte = 8u * (group & 3u);
    let sizes = unpack2x16float(block.x);
    let low = select(block.y, block.z, (group & 4u) != 0u) >> byte;
    let high = block.w >> (byte + (group & 4u));
    let minimum = ((low >> 6u) & 3u) | ((high & 15u) << 2u);
    return sizes * vec2<f32>(f32(low & 63u) * 0.125, -f32(minimum));
}

fn group_quants(row: u32, group: u32, word: u32) -> vec4<f32> {
    return vec4<f32>(unpack4xU8(five_bit_word(row, group, word)));
}

fn chunk_scales(row: u32, chunk: u32) -> vec4<f32> {
    return group_scale(row, chunk).xyxy;
}

// Bytes that fill all eight bits, for whoever reads them as signed.
const WIDE_BYTES: bool = true;

fn chunk_bytes(row: u32, chunk: u32) -> Bytes { return five_bit_bytes(row, chunk); }

fn chunk_quants(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let bytes = chunk_bytes(row, chunk);
    return unsigned_bytes(bytes.even, bytes.odd);
}
