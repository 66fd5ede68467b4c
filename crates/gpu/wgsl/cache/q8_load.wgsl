// q8: cached numbers are signed bytes, with a scale in half precision to each group of 32; q8_read has the layout.

struct Place { bytes: u32, scales: u32, second: bool, odd: bool }

fn place(pair: u32) -> Place {
    let head = pair / (HEAD_WIDTH / 2u) * 4u * HEAD_VECTORS;
    let own = pair % (HEAD_WIDTH / 2u);
    let group = own / 16u;
    return Place(head + own / 2u, head + HEAD_WIDTH / 4u + group / 2u, own % 2u == 1u, group % 2u == 1u);
}

fn pair_of(bytes: u32, scales: u32, at: Place) -> vec2<f32> {
    let four = vec4<f32>(unpack4xI8(bytes));
    let two = unpack2x16float(scales);
    return select(two.x, two.y, at.odd) * select(four.xy, four.zw, at.second);
}

fn load_key(pair: u32) -> vec2<f32> {
    let at = place(pair);
    return pair_of(keys[at.bytes], keys[at.scales], at);
}

fn load_value(pair: u32) -> vec2<f32> {
    let at = place(pair);
    return pair_of(values[at.bytes], values[at.scales], at);
}
