// bf16: the upper half of single precision.
// Plane 0: two values per word, rows padded with zeros to whole groups.

const GROUP: u32 = 32u;
const HAS_OFFSET: bool = false;

fn group_scale(row: u32, group: u32) -> vec2<f32> {
    return vec2<f32>(1.0, 0.0);
}

fn group_quants(row: u32, group: u32, word: u32) -> vec4<f32> {
    let at = 16u * group + 2u * word;
    let pairs = vec2<u32>(plane0(row, at), plane0(row, at + 1u));
    let even = pairs << vec2<u32>(16u);
    let odd = pairs & vec2<u32>(0xffff0000u);
    return bitcast<vec4<f32>>(vec4<u32>(even.x, odd.x, even.y, odd.y));
}
