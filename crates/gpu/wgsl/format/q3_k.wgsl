// q3_k: blocks of 256 signed three-bit quants; each 16 have a six-bit scale, biased by 32, which one f16
// number per block brings to size.
// Plane 0: low two bits, one word per group of 16: value 4w+i at bits 6−2w and 7−2w of byte i.
// Plane 1: 7 words per two blocks: their two f16 numbers, then 3 words for each block. Of these, the low
//          nibble of scale k is in byte k%4 of word (k/4)%2, in its high half for k ≥ 8; the upper two bits
//          are in byte k%4 of word 2, at bit 2(k/4).
// Plane 2: third bits, one word per two groups: value 4w+i at bit 7−w (even group) or 3−w (odd group) of
//          byte i, inverted against the bias of 4.
//
// A quant is read as the upper three bits of a signed byte, 32 times itself; the scale is divided by 32 to
// match, which is exact.

const GROUP: u32 = 16u;
const HAS_OFFSET: bool = false;

fn group_scale(row: u32, group: u32) -> vec2<f32> {
    let pair = 7u * (group >> 5u);
    let side = (group >> 4u) & 1u;
    let scales = pair + 1u + 3u * side;
    let byte = 8u * (group & 3u);
    let low = (plane1(row, scales + ((group >> 2u) & 1u)) >> (byte + ((group >> 1u) & 4u))) & 15u;
    let high = (plane1(row, scales + 2u) >> (byte + ((group >> 1u) & 6u))) & 3u;
    let size = unpack2x16float(plane1(row, pair) >> (16u * side)).x;
    return vec2<f32>(size * f32(i32(low | (high << 4u)) - 32) * 0.03125, 0.0);
}

fn group_quants(row: u32, group: u32, word: u32) -> vec4<f32> {
    let low = plane0(row, group) << (2u * word);
    let third = plane2(row, group >> 1u) << (4u * (group & 1u) + word);
    return vec4<f32>(unpack4xI8(((low & 0xc0c0c0c0u) >> 1u) | (third & 0x80808080u)));
}

fn chunk_scales(row: u32, chunk: u32) -> vec4<f32> {
    let pair = 7u * (chunk >> 4u);
    let side = (chunk >> 3u) & 1u;
    let scales = pair + 1u + 3u * side;
    let bytes = 16u * (chunk & 1u);
    let low = (plane1(row, scales + ((chunk >> 1u) & 1u)) >> (bytes + (chunk & 4u))) & 0x0f0fu;
    let high = (plane1(row, scales + 2u) >> (bytes + (chunk & 6u))) & 0x0303u;
    let size = unpack2x16float(plane1(row, pair) >> (16u * side)).x * 0.03125;
    let scale = size * (vec2<f32>(unpack4xU8(low | (high << 4u)).xy) - vec2<f32>(32.0));
    return vec4<f32>(scale.x, 0.0, scale.y, 0.0);
}

const WIDE_BYTES: bool = false;

fn chunk_bytes(row: u32, chunk: u32) -> Bytes {
    let groups = plane0_pair(row, chunk);
    let a = groups.x;
    let b = groups.y;
    let even = vec4<u32>(a >> 1u, a << 3u, b >> 1u, b << 3u);
    let odd = vec4<u32>(a << 1u, a << 5u, b << 1u, b << 5u);
    let third = vec4<u32>(plane2(row, chunk));
    let low = vec4<u32>(0x60606060u);
    let top = vec4<u32>(0x80808080u);
    return Bytes(
        (even & low) | ((third << vec4<u32>(0u, 2u, 4u, 6u)) & top),
        (odd & low) | ((third << vec4<u32>(1u, 3u, 5u, 7u)) & top));
}

fn chunk_quants(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let bytes = chunk_bytes(row, chunk);
    return signed_bytes(bytes.even, bytes.odd);
}
