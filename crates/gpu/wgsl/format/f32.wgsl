// f32: single precision, stored as it is.
// Plane 0: one word per value, rows padded with zeros to whole groups.

const GROUP: u32 = 32u;
const HAS_OFFSET: bool = false;

fn group_scale(row: u32, group: u32) -> vec2<f32> {
    return vec2<f32>(1.0, 0.0);
}

fn group_quants(row: u32, group: u32, word: u32) -> vec4<f32> {
    let at = 32u * group + 4u * word;
    return bitcast<vec4<f32>>(vec4<u32>(
        plane0(row, at), plane0(row, at + 1u), plane0(row, at + 2u), plane0(row, at + 3u)));
}
