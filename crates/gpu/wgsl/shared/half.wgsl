// half: two numbers in half precision, in one word.
//
// WGSL leaves open how `pack2x16float` rounds, and some GPUs cut off. Numbers that are half floats already are packed the same
// everywhere, so they are rounded to the nearest before; those below the normal ones, by less than the smallest half float.

fn pack_halves(pair: vec2<f32>) -> u32 {
    let bits = bitcast<vec2<u32>>(pair);
    let nearest = (bits + 0xfffu + ((bits >> vec2<u32>(13u)) & vec2<u32>(1u))) & vec2<u32>(0xffffe000u);
    return pack2x16float(bitcast<vec2<f32>>(nearest));
}
