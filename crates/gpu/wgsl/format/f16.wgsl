// f16: half precision, stored as it is.
// Plane 0: two values per word, rows padded with zeros to whole groups.

const GROUP: u32 = 32u;
const HAS_OFFSET: bool = false;

fn group_scale(row: u32, group: u32) -> vec2<f32> {
    return vec2<f32>(1.0, 0.0);
}

fn group_quants(row: u32, group: u32, word: u32) -> vec4<f32> {
    let at = 16u * group + 2u * word;
    return vec4<f32>(unpack2x16float(plane0(row, at)), unpack2x16float(plane0(row, at + 1u)));
}
