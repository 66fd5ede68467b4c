// f32: cached numbers are kept as they are, two words to a pair.

fn store_key(pair: u32, value: vec2<f32>) {
    keys[2u * pair] = bitcast<u32>(value.x);
    keys[2u * pair + 1u] = bitcast<u32>(value.y);
}

fn store_value(pair: u32, value: vec2<f32>) {
    values[2u * pair] = bitcast<u32>(value.x);
    values[2u * pair + 1u] = bitcast<u32>(value.y);
}
