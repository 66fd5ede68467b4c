// q8, read by eights: groups of 32 signed bytes with an f16 scale.
//
// A head of a row is HEAD_WIDTH / 16 vectors of sixteen bytes, then the scales of its groups, eight to a vector; the
// last vector is filled up with zeros. So a head shares no vector with its neighbours, and is written by itself.

struct Eight { bytes: vec2<u32>, scale: f32 }

fn key8(at: u32, eighth: u32) -> Eight {
    let scales = keys[at + HEAD_WIDTH / 16u + eighth / 32u];
    return eight_of(keys[at + eighth / 2u], scales, eighth);
}

fn value8(at: u32, eighth: u32) -> Eight {
    let scales = values[at + HEAD_WIDTH / 16u + eighth / 32u];
    return eight_of(values[at + eighth / 2u], scales, eighth);
}

fn eight_of(sixteen: vec4<u32>, scales: vec4<u32>, eighth: u32) -> Eight {
    let bytes = select(sixteen.xy, sixteen.zw, eighth % 2u == 1u);
    let pair = unpack2x16float(scales[eighth / 8u % 4u]);
    return Eight(bytes, select(pair.x, pair.y, eighth / 4u % 2u == 1u));
}

fn low4(eight: Eight) -> vec4<f32> { return eight.scale * vec4<f32>(unpack4xI8(eight.bytes.x)); }

fn high4(eight: Eight) -> vec4<f32> { return eight.scale * vec4<f32>(unpack4xI8(eight.bytes.y)); }
