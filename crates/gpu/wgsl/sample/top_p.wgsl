// top_p: how much of a mass top_p asks for.

/// The least that is at least top_p of it; the first token is always kept.
fn part_of(mass: vec2<u32>) -> vec2<u32> {
    let product = long_multiply(mass, params.top_p);
    let whole = product.x == 0u && product.y == 0u;
    let part = long_add(product.zw, select(ONE, NOTHING, whole));
    return select(part, ONE, part.x == 0u && part.y == 0u);
}
