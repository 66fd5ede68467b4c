// q8_0: groups of 32 signed bytes with one f16 scale.
// Plane 0: 8 words of bytes per group.
// Plane 1: scales, two to a word.

const GROUP: u32 = 32u;
const HAS_OFFSET: bool = false;

fn group_scale(row: u32, group: u32) -> vec2<f32> {
    return vec2<f32>(unpack2x16float(plane1(row, group >> 1u) >> (16u * (group & 1u))).x, 0.0);
}

fn group_quants(row: u32, group: u32, word: u32) -> vec4<f32> {
    return vec4<f32>(unpack4xI8(plane0(row, 8u * group + word)));
}

fn chunk_scales(row: u32, chunk: u32) -> vec4<f32> {
    return group_scale(row, chunk).xyxy;
}

const WIDE_BYTES: bool = false;

fn chunk_bytes(row: u32, chunk: u32) -> Bytes {
    let a = plane0_quad(row, 2u * chunk);
    let b = plane0_quad(row, 2u * chunk + 1u);
    return Bytes(vec4<u32>(a.xz, b.xz), vec4<u32>(a.yw, b.yw));
}

fn chunk_quants(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let bytes = chunk_bytes(row, chunk);
    return signed_bytes(bytes.even, bytes.odd);
}
