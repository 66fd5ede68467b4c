// q8: a head is stored at once, because its scales come after all of its bytes; q8_read has the layout.

const_assert UNIT % 32u == 0u;

fn store_key(source: u32, head: u32) { store_head(false, source, head); }

fn store_value(source: u32, head: u32) { store_head(true, source, head); }

fn fresh(is_value: bool, at: u32) -> f32 {
    if is_value { return v[at]; }
    return k[at];
}

fn put(is_value: bool, at: u32, word: u32) {
    if is_value { values[at] = word; } else { keys[at] = word; }
}

fn store_head(is_value: bool, source: u32, head: u32) {
    let bytes_at = head * 4u * HEAD_VECTORS;
    let scales_at = bytes_at + UNIT / 4u;
    var scales = vec2<f32>();
    for (var group = 0u; group < UNIT / 32u; group++) {
        let scale = store_group(is_value, source + 32u * group, bytes_at + 8u * group);
        if group % 2u == 0u { scales = vec2<f32>(scale, 0.0); } else { scales.y = scale; }
        if group % 2u == 1u || group + 1u == UNIT / 32u { put(is_value, scales_at + group / 2u, pack_halves(scales)); }
    }
}

// Stores 32 values as bytes and gives their scale, rounded to what a half float holds.
fn store_group(is_value: bool, source: u32, words_at: u32) -> f32 {
    // As bits: infinity and NaN are the largest, and the scale shows them.
    var largest = 0u;
    for (var i = 0u; i < 32u; i++) { largest = max(largest, bitcast<u32>(fresh(is_value, source + i)) & 0x7fffffffu); }
    let scale = unpack2x16float(pack_halves(vec2<f32>(bitcast<f32>(largest) / 127.0, 0.0))).x;
    let inverse = select(1.0 / scale, 0.0, scale == 0.0);
    for (var word = 0u; word < 8u; word++) {
        var packed = 0u;
        for (var i = 0u; i < 4u; i++) {
            let rounded = i32(round(clamp(fresh(is_value, source + 4u * word + i) * inverse, -127.0, 127.0)));
            packed |= u32(rounded & 255) << (8u * i);
        }
        put(is_value, words_at + word, packed);
    }
    return scale;
}
