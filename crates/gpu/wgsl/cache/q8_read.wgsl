// q8, read by eights: groups of 32 signed bytes with an f16 scale.
//
// A head of a row is HEAD_WIDTH / 16 vectors of sixteen bytes, then the scales of its groups, eight to a vector; the
// last vector is filled up with zeros. So a head shares no vector with its neighbours, and is written by itself.

// As it was read: to look at it would be to wait for it.
struct Eight { sixteen: vec4<u32>, scales: u32, eighth: u32 }

fn key8(at: u32, eighth: u32) -> Eight {
    let scales = keys[at + HEAD_WIDTH / 16u + eighth / 32u][eighth / 8u % 4u];
    return Eight(keys[at + eighth / 2u], scales, eighth);
}

fn value8(at: u32, eighth: u32) -> Eight {
    let scales = values[at + HEAD_WIDTH / 16u + eighth / 32u][eighth / 8u % 4u];
    return Eight(values[at + eighth / 2u], scales, eighth);
}

fn scale_of(eight: Eight) -> f32 {
    let pair = unpack2x16float(eight.scales);
    return select(pair.x, pair.y, eight.eighth / 4u % 2u == 1u);
}

fn low4(eight: Eight) -> vec4<f32> {
    let bytes = select(eight.sixteen.x, eight.sixteen.z, eight.eighth % 2u == 1u);
    return scale_of(eight) * vec4<f32>(unpack4xI8(bytes));
}

fn high4(eight: Eight) -> vec4<f32> {
    let bytes = select(eight.sixteen.y, eight.sixteen.w, eight.eighth % 2u == 1u);
    return scale_of(eight) * vec4<f32>(unpack4xI8(bytes));
}
