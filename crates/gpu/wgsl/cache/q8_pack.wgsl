// q8, written: the largest magnitude of a group of 32 becomes ±127, and the scale is a half float. Values are rounded
// to the scale as it is stored. The scale of a group with an infinity or NaN is one, too.

const GROUPS: u32 = HEAD_WIDTH / 32u;

const_assert HEAD_WIDTH % 32u == 0u;
const_assert 2u * GROUPS <= LANES;

var<workgroup> scales: array<f32, 2u * GROUPS>;

// The scales of both rows.
fn prepare(lane: u32) {
    if lane < 2u * GROUPS {
        let row = lane / GROUPS;
        let quad = lane % GROUPS * 8u;
        var size = magnitude(fresh(row, quad));
        for (var i = 1u; i < 8u; i++) { size = max(size, magnitude(fresh(row, quad + i))); }
        let scale = bitcast<f32>(max(max(size.x, size.y), max(size.z, size.w))) / 127.0;
        scales[lane] = unpack2x16float(pack_halves(vec2<f32>(scale, 0.0))).x;
    }
    workgroupBarrier();
}

fn four_bytes(row: u32, quad: u32) -> u32 {
    let scale = scales[row * GROUPS + quad / 8u];
    if scale == 0.0 { return 0u; }
    let rounded = vec4<i32>(round(clamp(fresh(row, quad) * (1.0 / scale), vec4<f32>(-127.0), vec4<f32>(127.0))));
    let bytes = vec4<u32>(rounded & vec4<i32>(255)) << vec4<u32>(0u, 8u, 16u, 24u);
    return bytes.x | bytes.y | bytes.z | bytes.w;
}

fn two_scales(row: u32, group: u32) -> u32 {
    var pair = vec2<f32>();
    if group < GROUPS { pair.x = scales[row * GROUPS + group]; }
    if group + 1u < GROUPS { pair.y = scales[row * GROUPS + group + 1u]; }
    return pack_halves(pair);
}

fn packed(row: u32, vector: u32) -> vec4<u32> {
    if vector >= HEAD_WIDTH / 16u {
        let group = 8u * (vector - HEAD_WIDTH / 16u);
        return vec4<u32>(
            two_scales(row, group),
            two_scales(row, group + 2u),
            two_scales(row, group + 4u),
            two_scales(row, group + 6u),
        );
    }
    let quad = 4u * vector;
    return vec4<u32>(
        four_bytes(row, quad),
        four_bytes(row, quad + 1u),
        four_bytes(row, quad + 2u),
        four_bytes(row, quad + 3u),
    );
}

fn fresh8(row: u32, eighth: u32) -> Eight {
    let bytes = vec2<u32>(four_bytes(row, 2u * eighth), four_bytes(row, 2u * eighth + 1u));
    return Eight(vec4<u32>(bytes, bytes), pack_halves(vec2<f32>(scales[row * GROUPS + eighth / 4u])), eighth);
}
