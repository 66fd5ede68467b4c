// integer: products of quants with x in fixed point, four at a time. Each chunk of x has a scale of its own and sixteen
// bits, the upper and the lower eight apart: about what is lost is the last bit of what half precision would keep five
// bits less of. Needs a fifth of the instructions, which is what limits a GPU that reads weights of four bits.
//
// Slots        format: GROUP, HAS_OFFSET, WIDE_BYTES, chunk_scales, chunk_bytes
// Constants    SUBGROUP (eight lanes that share a chunk are of one subgroup)

const_assert SUBGROUP >= 8u;

// Words of a chunk lie in four vectors: even and odd words of the upper halves, then of the lower ones.
const STRIDE: u32 = PIECE + 1u;

// The largest that leaves both halves within eight signed bits.
const LARGEST: f32 = 32639.0;

var<workgroup> staged: array<vec4<u32>, ROWS * 4u * STRIDE>;
// The scale of a chunk, and the sums of its two halves.
var<workgroup> staged_scales: array<vec4<f32>, ROWS * STRIDE>;

struct Chunk { bytes: Bytes, scales: vec4<f32> }

fn stage(row: u32, four: u32, here: bool, value: vec4<f32>) {
    // Eight lanes side by side have the eight words of a chunk.
    let size = abs(value);
    var largest = max(max(size.x, size.y), max(size.z, size.w));
    largest = max(largest, subgroupShuffleXor(largest, 1u));
    largest = max(largest, subgroupShuffleXor(largest, 2u));
    largest = max(largest, subgroupShuffleXor(largest, 4u));
    var half = value.x + value.y + value.z + value.w;
    half += subgroupShuffleXor(half, 1u);
    half += subgroupShuffleXor(half, 2u);
    let other = subgroupShuffleXor(half, 4u);
    let fixed = vec4<i32>(round(value * select(LARGEST / largest, 0.0, largest == 0.0)));
    let upper = (fixed + vec4<i32>(128)) >> vec4<u32>(8u);
    let lower = fixed - (upper << vec4<u32>(8u));
    if here {
        let chunk = four / 8u;
        let at = (row * 4u + four % 2u) * STRIDE + chunk;
        staged[at][four % 8u / 2u] = pack4xI8(upper);
        staged[at + 2u * STRIDE][four % 8u / 2u] = pack4xI8(lower);
        if four % 8u == 0u { staged_scales[row * STRIDE + chunk] = vec4<f32>(largest / LARGEST, half, other, 0.0); }
    }
}

fn load_chunk(weight_row: u32, chunk: u32) -> Chunk {
    return Chunk(chunk_bytes(weight_row, chunk), chunk_scales(weight_row, chunk));
}

// The product of a chunk of the weight with a chunk of x.
fn chunk_dot(weight: Chunk, row: u32, chunk: u32) -> f32 {
    let at = row * 4u * STRIDE + chunk;
    let upper_even = staged[at];
    let upper_odd = staged[at + STRIDE];
    let lower_even = staged[at + 2u * STRIDE];
    let lower_odd = staged[at + 3u * STRIDE];
    var even = weight.bytes.even;
    var odd = weight.bytes.odd;
    if WIDE_BYTES {
        even ^= vec4<u32>(0x80808080u);
        odd ^= vec4<u32>(0x80808080u);
    }
    let first_upper = dot4I8Packed(even.x, upper_even.x) + dot4I8Packed(odd.x, upper_odd.x)
        + dot4I8Packed(even.y, upper_even.y) + dot4I8Packed(odd.y, upper_odd.y);
    let first_lower = dot4I8Packed(even.x, lower_even.x) + dot4I8Packed(odd.x, lower_odd.x)
        + dot4I8Packed(even.y, lower_even.y) + dot4I8Packed(odd.y, lower_odd.y);
    let other_upper = dot4I8Packed(even.z, upper_even.z) + dot4I8Packed(odd.z, upper_odd.z)
        + dot4I8Packed(even.w, upper_even.w) + dot4I8Packed(odd.w, upper_odd.w);
    let other_lower = dot4I8Packed(even.z, lower_even.z) + dot4I8Packed(odd.z, lower_odd.z)
        + dot4I8Packed(even.w, lower_even.w) + dot4I8Packed(odd.w, lower_odd.w);
    let scales = weight.scales;
    let x = staged_scales[row * STRIDE + chunk];
    var sum: f32;
    if GROUP == 32u {
        sum = scales.x * x.x * f32(((first_upper + other_upper) << 8u) + first_lower + other_lower);
    } else {
        sum = x.x * (scales.x * f32((first_upper << 8u) + first_lower) + scales.z * f32((other_upper << 8u) + other_lower));
    }
    if WIDE_BYTES {
        // Bytes were read as 128 less than they are.
        sum += 128.0 * (scales.x * x.y + scales.z * x.z);
    }
    if HAS_OFFSET { sum += scales.y * x.y + scales.w * x.z; }
    return sum;
}
