// f32: single precision, stored as it is.
// Plane 0: one word per value, rows padded with zeros to whole groups.

const GROUP: u32 = 32u;
const HAS_OFFSET: bool = false;

fn group_scale(row: u32, group: u32) -> vec2<f32> {
    return vec2<f32>(1.0, 0.0);
}

fn group_quants(row: u32, group: u32, word: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(plane0_quad(row, 8u * group + word));
}

fn chunk_scales(row: u32, chunk: u32) -> vec4<f32> {
    return vec4<f32>(1.0, 0.0, 1.0, 0.0);
}

fn chunk_quants(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    return array<vec4<f32>, 8>(
        group_quants(row, chunk, 0u), group_quants(row, chunk, 1u),
        group_quants(row, chunk, 2u), group_quants(row, chunk, 3u),
        group_quants(row, chunk, 4u), group_quants(row, chunk, 5u),
        group_quants(row, chunk, 6u), group_quants(row, chunk, 7u));
}
