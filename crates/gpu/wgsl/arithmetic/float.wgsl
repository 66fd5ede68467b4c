// float: products of decoded weights with x as it is.
//
// Slots        format: GROUP, HAS_OFFSET, chunk_scales, chunk_quants

// Chunks lie side by side, so that neighbouring lanes read neighbouring words; one more than there are, so that they
// also write to different banks.
const STRIDE: u32 = PIECE + 1u;

var<workgroup> staged: array<vec4<f32>, ROWS * 8u * STRIDE>;

struct Chunk { quants: array<vec4<f32>, 8>, scales: vec4<f32> }

fn stage(row: u32, four: u32, here: bool, value: vec4<f32>) {
    if here { staged[(row * 8u + four % 8u) * STRIDE + four / 8u] = value; }
}

fn load_chunk(weight_row: u32, chunk: u32) -> Chunk {
    return Chunk(chunk_quants(weight_row, chunk), chunk_scales(weight_row, chunk));
}

// The product of a chunk of the weight with a chunk of x.
fn chunk_dot(weight: Chunk, row: u32, chunk: u32) -> f32 {
    let at = row * 8u * STRIDE + chunk;
    let x0 = staged[at];
    let x1 = staged[at + STRIDE];
    let x2 = staged[at + 2u * STRIDE];
    let x3 = staged[at + 3u * STRIDE];
    let x4 = staged[at + 4u * STRIDE];
    let x5 = staged[at + 5u * STRIDE];
    let x6 = staged[at + 6u * STRIDE];
    let x7 = staged[at + 7u * STRIDE];
    let q = weight.quants;
    let first = dot(q[0], x0) + dot(q[1], x1) + dot(q[2], x2) + dot(q[3], x3);
    let other = dot(q[4], x4) + dot(q[5], x5) + dot(q[6], x6) + dot(q[7], x7);
    let scales = weight.scales;
    var sum: f32;
    if GROUP == 32u { sum = scales.x * (first + other); } else { sum = scales.x * first + scales.z * other; }
    if HAS_OFFSET {
        let ones = vec4<f32>(1.0);
        sum += scales.y * dot(x0 + x1 + x2 + x3, ones) + scales.w * dot(x4 + x5 + x6 + x7, ones);
    }
    return sum;
}
