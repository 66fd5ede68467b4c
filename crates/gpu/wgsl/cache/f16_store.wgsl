// f16: cached numbers are rounded to half precision, a word to a pair.

const_assert UNIT == 2u;

fn store_key(source: u32, unit: u32) { keys[unit] = pack_halves(vec2<f32>(k[source], k[source + 1u])); }

fn store_value(source: u32, unit: u32) { values[unit] = pack_halves(vec2<f32>(v[source], v[source + 1u])); }
