// f16, read by eights: a head of a row is HEAD_WIDTH / 8 vectors of eight half floats, two to a word.

struct Eight { halves: vec4<u32> }

fn key8(at: u32, eighth: u32) -> Eight { return Eight(keys[at + eighth]); }

fn value8(at: u32, eighth: u32) -> Eight { return Eight(values[at + eighth]); }

fn low4(eight: Eight) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(eight.halves.x), unpack2x16float(eight.halves.y));
}

fn high4(eight: Eight) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(eight.halves.z), unpack2x16float(eight.halves.w));
}
