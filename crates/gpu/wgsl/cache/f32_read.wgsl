// f32, read by eights: a head of a row is HEAD_WIDTH / 4 vectors of four values as they are.

struct Eight { low: vec4<u32>, high: vec4<u32> }

fn key8(at: u32, eighth: u32) -> Eight { return Eight(keys[at + 2u * eighth], keys[at + 2u * eighth + 1u]); }

fn value8(at: u32, eighth: u32) -> Eight { return Eight(values[at + 2u * eighth], values[at + 2u * eighth + 1u]); }

fn low4(eight: Eight) -> vec4<f32> { return bitcast<vec4<f32>>(eight.low); }

fn high4(eight: Eight) -> vec4<f32> { return bitcast<vec4<f32>>(eight.high); }
