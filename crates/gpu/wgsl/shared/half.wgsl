// half: two numbers in half precision, in one word.
//
// WGSL leaves open how `pack2x16float` rounds, and some GPUs cut off. Numbers that are half floats already are packed the same
// everywhere, so they are rounded to the nearest before; those below the normal ones, by less than the smallest half float.
// A number too large becomes the largest half float. Infinity and NaN stay, so that they are found out.

fn pack_halves(pair: vec2<f32>) -> u32 {
    let bits = bitcast<vec2<u32>>(pair);
    let magnitude = bits & vec2<u32>(0x7fffffffu);
    let nearest = (magnitude + 0xfffu + ((magnitude >> vec2<u32>(13u)) & vec2<u32>(1u))) & vec2<u32>(0xffffe000u);
    let bounded = select(min(nearest, vec2<u32>(0x477fe000u)), magnitude, magnitude >= vec2<u32>(0x7f800000u));
    return pack2x16float(bitcast<vec2<f32>>(bounded | (bits & vec2<u32>(0x80000000u))));
}
