// linear_row: y = W · x for one row of x or a few, and for each expert that a row is routed to.
//
// Work split   one workgroup computes TILES times LANES / PARTS outputs (x) of ROWS rows (y) and one expert slot (z);
//              PARTS lanes share an output and walk along x a chunk of 32 values at a time. Every workgroup first makes
//              its own copy of x in workgroup memory, PIECE chunks at once: what comes before the product is computed
//              on the way, which costs less than a dispatch of its own.
// Reads        what the input slot reads, weight as packed planes        Writes   y
// Slots        format: GROUP, HAS_OFFSET, chunk_scales, chunk_quants     select: matrix     epilogue: PAIRED, finish
//              input: prepare, input4     reduce: workgroup_sum, part_sum     entry
// Constants    LANES, PARTS, ROWS, CHUNKS (of a row), PIECE, TILES (1 where x has more than one piece)

@group(1) @binding(2) var<storage, read_write> y: array<f32>;

const OUTPUTS: u32 = LANES / PARTS;

// Chunks lie side by side, so that neighbouring lanes read neighbouring words; one more than there are, so that they
// also write to different banks.
const STRIDE: u32 = PIECE + 1u;

var<workgroup> staged: array<vec4<f32>, ROWS * 8u * STRIDE>;

// The product of a chunk of the weight with the chunk of x that is staged from `at` on.
fn chunk_dot(quants: array<vec4<f32>, 8>, scales: vec4<f32>, at: u32) -> f32 {
    let x0 = staged[at];
    let x1 = staged[at + STRIDE];
    let x2 = staged[at + 2u * STRIDE];
    let x3 = staged[at + 3u * STRIDE];
    let x4 = staged[at + 4u * STRIDE];
    let x5 = staged[at + 5u * STRIDE];
    let x6 = staged[at + 6u * STRIDE];
    let x7 = staged[at + 7u * STRIDE];
    let first = dot(quants[0], x0) + dot(quants[1], x1) + dot(quants[2], x2) + dot(quants[3], x3);
    let other = dot(quants[4], x4) + dot(quants[5], x5) + dot(quants[6], x6) + dot(quants[7], x7);
    var sum: f32;
    if GROUP == 32u { sum = scales.x * (first + other); } else { sum = scales.x * first + scales.z * other; }
    if HAS_OFFSET {
        let ones = vec4<f32>(1.0);
        sum += scales.y * dot(x0 + x1 + x2 + x3, ones) + scales.w * dot(x4 + x5 + x6 + x7, ones);
    }
    return sum;
}

fn kernel(workgroup: vec3<u32>, lane: u32) {
    let slot = workgroup.z;
    let first_row = workgroup.y * ROWS;
    let part = lane % PARTS;
    prepare(lane, workgroup.x == 0u && slot == 0u);
    for (var tile = 0u; tile < TILES; tile++) {
        let output = (workgroup.x * TILES + tile) * OUTPUTS + lane / PARTS;
        let tensor_row = matrix(first_row, slot) * params.matrix_rows + params.first_row + output;
        // Rows before the shard wrap around to large numbers, so one comparison covers both ends.
        let weight_row = tensor_row - params.shard_first;
        let here = output < params.outputs && weight_row < params.shard_rows;
        var sums: array<vec2<f32>, ROWS>;
        for (var piece = 0u; piece < CHUNKS; piece += PIECE) {
            let count = min(PIECE, CHUNKS - piece);
            if tile == 0u {
                if piece > 0u { workgroupBarrier(); }
                for (var i = 0u; i < (8u * PIECE + LANES - 1u) / LANES; i++) {
                    let four = lane + i * LANES;
                    if four < 8u * count {
                        for (var row = 0u; row < ROWS; row++) {
                            let at = row * 8u * STRIDE + (four % 8u) * STRIDE + four / 8u;
                            staged[at] = input4(first_row + row, slot, 8u * piece + four, 8u * piece / LANES + i);
                        }
                    }
                }
                workgroupBarrier();
            }
            if here {
                for (var chunk = part; chunk < count; chunk += PARTS) {
                    let scales = chunk_scales(weight_row, piece + chunk);
                    let quants = chunk_quants(weight_row, piece + chunk);
                    for (var row = 0u; row < ROWS; row++) {
                        sums[row].x += chunk_dot(quants, scales, row * 8u * STRIDE + chunk);
                    }
                    if PAIRED {
                        let pair_scales = chunk_scales(weight_row + params.pair, piece + chunk);
                        let pair_quants = chunk_quants(weight_row + params.pair, piece + chunk);
                        for (var row = 0u; row < ROWS; row++) {
                            sums[row].y += chunk_dot(pair_quants, pair_scales, row * 8u * STRIDE + chunk);
                        }
                    }
                }
            }
        }
        for (var row = 0u; row < ROWS; row++) {
            let total = part_sum(sums[row], lane) * params.factor;
            if part == 0u && here && first_row + row < max(step.rows, 1u) {
                let at = params.y_at + (first_row + row) * params.y_stride + slot * params.outputs + output;
                y[at] = finish(first_row + row, output, total.x, total.y);
            }
        }
    }
}
