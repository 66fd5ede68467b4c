// integer: products of quants with x in fixed point, four at a time. Each chunk of x has a scale of its own and 24 bits,
// eight at a time, which is what single precision keeps of its largest value. Needs a third of the instructions, and these
// are what limits a GPU that reads weights of four bits.
//
// Slots        format: GROUP, HAS_OFFSET, WIDE_BYTES, chunk_scales, chunk_bytes
// Constants    SUBGROUP (two lanes that share a chunk are of one subgroup)

// Words of a chunk lie in six vectors: even and odd words of the upper eight bits, then of the middle, then of the lower.
const STRIDE: u32 = PIECE + 1u;

// Just below what leaves all three within eight signed bits, because products are rounded.
const LARGEST: f32 = 8000000.0;

var<workgroup> staged: array<vec4<u32>, ROWS * 6u * STRIDE>;
// The scale of a chunk, and the sums of its two halves.
var<workgroup> staged_scales: array<vec4<f32>, ROWS * STRIDE>;

struct Chunk { bytes: Bytes, scales: vec4<f32> }

// Three bytes of each of four values: upper, middle, lower. Bytes are signed, so what lies above one is rounded.
fn bytes_of(value: vec4<f32>, scale: f32) -> vec3<u32> {
    let whole = vec4<i32>(round(value * scale));
    let most = (whole + vec4<i32>(128)) >> vec4<u32>(8u);
    let upper = (most + vec4<i32>(128)) >> vec4<u32>(8u);
    return vec3<u32>(
        pack4xI8(upper), pack4xI8(most - (upper << vec4<u32>(8u))), pack4xI8(whole - (most << vec4<u32>(8u))));
}

fn stage(row: u32, chunk: u32, odd: u32, here: bool, values: Values) {
    let size = max(max(abs(values.a), abs(values.b)), max(abs(values.c), abs(values.d)));
    var largest = max(max(size.x, size.y), max(size.z, size.w));
    // The lane beside has the other words of the chunk.
    largest = max(largest, subgroupShuffleXor(largest, 1u));
    let ones = vec4<f32>(1.0);
    var halves = vec2<f32>(dot(values.a + values.b, ones), dot(values.c + values.d, ones));
    halves += subgroupShuffleXor(halves, 1u);
    let scale = select(LARGEST / largest, 0.0, largest == 0.0);
    let a = bytes_of(values.a, scale);
    let b = bytes_of(values.b, scale);
    let c = bytes_of(values.c, scale);
    let d = bytes_of(values.d, scale);
    if here {
        let at = (row * 6u + odd) * STRIDE + chunk;
        staged[at] = vec4<u32>(a.x, b.x, c.x, d.x);
        staged[at + 2u * STRIDE] = vec4<u32>(a.y, b.y, c.y, d.y);
        staged[at + 4u * STRIDE] = vec4<u32>(a.z, b.z, c.z, d.z);
        if odd == 0u { staged_scales[row * STRIDE + chunk] = vec4<f32>(largest / LARGEST, halves, 0.0); }
    }
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
