// f32: cached numbers are kept as they are, two words to a pair.

fn load_key(pair: u32) -> vec2<f32> { return bitcast<vec2<f32>>(vec2<u32>(keys[2u * pair], keys[2u * pair + 1u])); }

fn load_value(pair: u32) -> vec2<f32> { return bitcast<vec2<f32>>(vec2<u32>(values[2u * pair], values[2u * pair + 1u])); }
