// integer: products of quants with x in fixed point, four at a time. Each chunk of x has a scale of its own and 24 bits,
// eight at a time, which is what single precision keeps of its largest value. Needs a third of the instructions, and these
// are what limits a GPU that reads weights of four bits.
//
// Slots        format: GROUP, HAS_OFFSET, WIDE_BYTES, chunk_scales, chunk_bytes
// Constants    SUBGROUP (eight lanes that share a chunk are of one subgroup)

const_assert SUBGROUP >= 8u;

// Words of a chunk lie in six vectors: even and odd words of the upper eight bits, then of the middle, then of the lower.
const STRIDE: u32 = PIECE + 1u;

// Just below what leaves all three within eight signed bits, because products are rounded.
const LARGEST: f32 = 8000000.0;

var<workgroup> staged: array<vec4<u32>, ROWS * 6u * STRIDE>;
// The scale of a chunk, and the sums of its two halves.
var<workgroup> staged_scales: array<vec4<f32>, ROWS * STRIDE>;

struct Chunk { bytes: Bytes, scales: vec4<f32> }

// Stages four values of x. Eight lanes side by side have the eight words of a chunk: each packs its own, and then one
// vector of words is brought together by each of six of them, because a part of a vector cannot be written alone.
fn stage(row: u32, four: u32, here: bool, value: vec4<f32>) {
    // As bits, so that infinity and NaN are the largest: the chunk's scale, and with it every product, shows them.
    let size = magnitude(value);
    var bits = max(max(size.x, size.y), max(size.z, size.w));
    bits = max(bits, subgroupShuffleXor(bits, 1u));
    bits = max(bits, subgroupShuffleXor(bits, 2u));
    bits = max(bits, subgroupShuffleXor(bits, 4u));
    let largest = bitcast<f32>(bits);
    var half = value.x + value.y + value.z + value.w;
    half += subgroupShuffleXor(half, 1u);
    half += subgroupShuffleXor(half, 2u);
    let other = subgroupShuffleXor(half, 4u);

    // Bytes are signed, so what lies above one is rounded.
    let whole = vec4<i32>(round(value * select(LARGEST / largest, 0.0, largest == 0.0)));
    let most = (whole + vec4<i32>(128)) >> vec4<u32>(8u);
    let top = (most + vec4<i32>(128)) >> vec4<u32>(8u);
    let upper = pack4xI8(top);
    let middle = pack4xI8(most - (top << vec4<u32>(8u)));
    let lower = pack4xI8(whole - (most << vec4<u32>(8u)));

    let own = four % 8u;
    let first = (four % SUBGROUP) - own + own % 2u;
    let uppers = words_from(upper, first);
    let middles = words_from(middle, first);
    let lowers = words_from(lower, first);
    let words = select(select(lowers, middles, own < 4u), uppers, own < 2u);
    let chunk = four / 8u;
    if here && own < 6u { staged[(row * 6u + own) * STRIDE + chunk] = words; }
    if here && own == 0u { staged_scales[row * STRIDE + chunk] = vec4<f32>(largest / LARGEST, half, other, 0.0); }
}

// Every other word from a lane of the subgroup on.
fn words_from(word: u32, first: u32) -> vec4<u32> {
    return vec4<u32>(
        subgroupShuffle(word, first), subgroupShuffle(word, first + 2u),
        subgroupShuffle(word, first + 4u), subgroupShuffle(word, first + 6u));
}

fn load_chunk(weight_row: u32, chunk: u32) -> Chunk {
    return Chunk(chunk_bytes(weight_row, chunk), chunk_scales(weight_row, chunk));
}

// Products of the two halves of a chunk with eight bits of x.
fn half_dots(weight: Bytes, even: vec4<u32>, odd: vec4<u32>) -> vec2<i32> {
    return vec2<i32>(
        dot4I8Packed(weight.even.x, even.x) + dot4I8Packed(weight.odd.x, odd.x)
            + dot4I8Packed(weight.even.y, even.y) + dot4I8Packed(weight.odd.y, odd.y),
        dot4I8Packed(weight.even.z, even.z) + dot4I8Packed(weight.odd.z, odd.z)
            + dot4I8Packed(weight.even.w, even.w) + dot4I8Packed(weight.odd.w, odd.w));
}

// The product of a chunk of the weight with a chunk of x.
fn chunk_dot(weight: Chunk, row: u32, chunk: u32) -> f32 {
    var bytes = weight.bytes;
    if WIDE_BYTES {
        bytes.even ^= vec4<u32>(0x80808080u);
        bytes.odd ^= vec4<u32>(0x80808080u);
    }
    let at = row * 6u * STRIDE + chunk;
    let upper = half_dots(bytes, staged[at], staged[at + STRIDE]);
    let middle = half_dots(bytes, staged[at + 2u * STRIDE], staged[at + 3u * STRIDE]);
    let lower = half_dots(bytes, staged[at + 4u * STRIDE], staged[at + 5u * STRIDE]);
    // The upper part alone would overflow a word when it is brought to its place.
    let dots = 65536.0 * vec2<f32>(upper) + vec2<f32>((middle << vec2<u32>(8u)) + lower);
    let scales = weight.scales;
    let x = staged_scales[row * STRIDE + chunk];
    var sum: f32;
    if GROUP == 32u { sum = scales.x * (dots.x + dots.y); } else { sum = scales.x * dots.x + scales.z * dots.y; }
    sum *= x.x;
    if WIDE_BYTES {
        // Bytes were read as 128 less than they are.
        sum += 128.0 * (scales.x * x.y + scales.z * x.z);
    }
    if HAS_OFFSET { sum += scales.y * x.y + scales.w * x.z; }
    return sum;
}
