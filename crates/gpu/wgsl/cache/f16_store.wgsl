// f16: cached numbers are rounded to half precision, a word to a pair.

fn store_key(pair: u32, value: vec2<f32>) { keys[pair] = pack_halves(value); }

fn store_value(pair: u32, value: vec2<f32>) { values[pair] = pack_halves(value); }
