// linear_row: y = W · x for one row of x or a few, and for each expert that a row is routed to.
//
// Work split   one workgroup computes TILES times LANES / PARTS outputs (x) of ROWS rows (y) and one expert slot (z);
//              PARTS lanes share an output and walk along x a chunk of 32 values at a time. Every workgroup first makes
//              its own copy of x in workgroup memory, PIECE chunks at once: what comes before the product is computed
//              on the way, which costs less than a dispatch of its own.
// Reads        what the input slot reads, weight as packed planes        Writes   y
// Slots        arithmetic: stage, load_chunk, chunk_dot     format     select: matrix     epilogue: PAIRED, finish
//              input: prepare, input4     reduce: workgroup_sum, part_sum     entry
// Constants    LANES, PARTS, ROWS, CHUNKS (of a row), PIECE, TILES (1 where x has more than one piece)

@group(1) @binding(2) var<storage, read_write> y: array<f32>;

const OUTPUTS: u32 = LANES / PARTS;

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
                    let inside = four < 8u * count;
                    for (var row = 0u; row < ROWS; row++) {
                        var value = vec4<f32>();
                        if inside { value = input4(first_row + row, slot, 8u * piece + four, 8u * piece / LANES + i); }
                        stage(row, four, inside, value);
                    }
                }
                workgroupBarrier();
            }
            if here {
                for (var chunk = part; chunk < count; chunk += PARTS) {
                    let weight = load_chunk(weight_row, piece + chunk);
                    for (var row = 0u; row < ROWS; row++) { sums[row].x += chunk_dot(weight, row, chunk); }
                    if PAIRED {
                        let pair = load_chunk(weight_row + params.pair, piece + chunk);
                        for (var row = 0u; row < ROWS; row++) { sums[row].y += chunk_dot(pair, row, chunk); }
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
