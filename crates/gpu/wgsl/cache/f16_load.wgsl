// f16: cached numbers are rounded to half precision, a word to a pair.

fn load_key(pair: u32) -> vec2<f32> { return unpack2x16float(keys[pair]); }

fn load_value(pair: u32) -> vec2<f32> { return unpack2x16float(values[pair]); }
