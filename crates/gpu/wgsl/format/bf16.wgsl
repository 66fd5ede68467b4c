// bf16: the upper half of single precision.
// Plane 0: two values per word, rows padded with zeros to whole groups.

const GROUP: u32 = 32u;
const HAS_OFFSET: bool = false;

fn group_scale(row: u32, group: u32) -> vec2<f32> {
    return vec2<f32>(1.0, 0.0);
}

fn floats(words: vec2<u32>) -> vec4<f32> {
    let even = words << vec2<u32>(16u);
    let odd = words & vec2<u32>(0xffff0000u);
    return bitcast<vec4<f32>>(vec4<u32>(even.x, odd.x, even.y, odd.y));
}

fn group_quants(row: u32, group: u32, word: u32) -> vec4<f32> {
    return floats(plane0_pair(row, 8u * group + word));
}

fn chunk_scales(row: u32, chunk: u32) -> vec4<f32> {
    return vec4<f32>(1.0, 0.0, 1.0, 0.0);
}

fn chunk_quants(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let a = plane0_quad(row, 4u * chunk);
    let b = plane0_quad(row, 4u * chunk + 1u);
    let c = plane0_quad(row, 4u * chunk + 2u);
    let d = plane0_quad(row, 4u * chunk + 3u);
    return array<vec4<f32>, 8>(
        floats(a.xy), floats(a.zw), floats(b.xy), floats(b.zw),
        floats(c.xy), floats(c.zw), floats(d.xy), floats(d.zw));
}
