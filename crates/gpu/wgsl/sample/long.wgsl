// long: whole numbers of 64 bits in two words, the low one first.
//
// Weights are added in these rather than in f32, so that a sum is exact, whatever the order of its parts: the same
// token on every GPU, and nearly always the one that f64 gives on a CPU.

const NOTHING = vec2<u32>(0u, 0u);
const ONE = vec2<u32>(1u, 0u);

fn long_less(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}

fn long_add(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn long_subtract(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}

/// All 128 bits of the product, the lowest word first.
fn long_multiply(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
    let low = word_multiply(a.x, b.x);
    let cross = word_multiply(a.y, b.x);
    let middle = long_add(long_add(word_multiply(a.x, b.y), vec2<u32>(low.y, 0u)), cross);
    let carry = select(0u, 1u, long_less(middle, cross));
    let high = long_add(word_multiply(a.y, b.y), vec2<u32>(middle.y, carry));
    return vec4<u32>(low.x, middle.x, high.x, high.y);
}

fn word_multiply(a: u32, b: u32) -> vec2<u32> {
    let low = (a & 0xffffu) * (b & 0xffffu);
    let cross = vec2<u32>((a & 0xffffu) * (b >> 16u), (a >> 16u) * (b & 0xffffu));
    let middle = (low >> 16u) + (cross.x & 0xffffu) + (cross.y & 0xffffu);
    let high = (a >> 16u) * (b >> 16u) + (cross.x >> 16u) + (cross.y >> 16u) + (middle >> 16u);
    return vec2<u32>((middle << 16u) | (low & 0xffffu), high);
}
