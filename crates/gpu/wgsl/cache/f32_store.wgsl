// f32: cached numbers are kept as they are, two words to a pair.

const_assert UNIT == 2u;

fn store_key(source: u32, unit: u32) {
    keys[2u * unit] = bitcast<u32>(k[source]);
    keys[2u * unit + 1u] = bitcast<u32>(k[source + 1u]);
}

fn store_value(source: u32, unit: u32) {
    values[2u * unit] = bitcast<u32>(v[source]);
    values[2u * unit + 1u] = bitcast<u32>(v[source + 1u]);
}
