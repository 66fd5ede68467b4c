// linear_row: y = W · x for one row of x or a few, and for each expert that a row is routed to.
//
// Work split   one workgroup computes TILES times LANES / PARTS outputs (x) of ROWS rows (y) and one expert slot (z);
//              PARTS lanes share an output and walk along x a chunk of 32 values at a time. Every workgroup first makes
//              its own copy of x in workgroup memory, PIECE chunks at once: what comes before the product is computed
//              on the way, which costs less than a dispatch of its own.
// Reads        what the input slot reads, weight as packed planes        Writes   y
// Slots        arithmetic: stage, load_chunk, chunk_dot     format     select: matrix     epilogue: PAIRED, finish
//              input: prepare, input_values     reduce: workgroup_sum, part_sum     entry
// Constants    LANES, PARTS, ROWS, CHUNKS (of a row), PIECE, TILES (1 where x has more than one piece)
//
// Loops over what a lane holds are written out, because compilers keep an array that a loop indexes in memory, and wait
// for each load in turn. Weights are asked for before x is made: memory is far away.

@group(1) @binding(2) var<storage, read_write> y: array<f32>;

const OUTPUTS: u32 = LANES / PARTS;

// Chunks that each lane has of a piece, where all have as many.
const LANE_CHUNKS: u32 = PIECE / PARTS;
const EVEN: bool = PIECE % PARTS == 0u && CHUNKS % PIECE == 0u;

// A lane makes half of a chunk of x: its even words of four values, or its odd ones.
struct Values { a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32> }

const_assert 2u * PIECE <= LANES;

// The first chunks of a lane's row. Those that it does not have are as the first.
struct Held { a: Chunk, b: Chunk, c: Chunk, d: Chunk }

fn hold(weight_row: u32, first: u32) -> Held {
    let a = load_chunk(weight_row, first);
    var held = Held(a, a, a, a);
    if LANE_CHUNKS > 1u { held.b = load_chunk(weight_row, first + PARTS); }
    if LANE_CHUNKS > 2u { held.c = load_chunk(weight_row, first + 2u * PARTS); }
    if LANE_CHUNKS > 3u { held.d = load_chunk(weight_row, first + 3u * PARTS); }
    return held;
}

fn held_dot(held: Held, chunk: u32) -> f32 {
    var sum = chunk_dot(held.a, 0u, chunk);
    if LANE_CHUNKS > 1u { sum += chunk_dot(held.b, 0u, chunk + PARTS); }
    if LANE_CHUNKS > 2u { sum += chunk_dot(held.c, 0u, chunk + 2u * PARTS); }
    if LANE_CHUNKS > 3u { sum += chunk_dot(held.d, 0u, chunk + 3u * PARTS); }
    return sum;
}

// The product of the chunks after those held, of the piece that begins at a chunk.
fn rest_dot(weight_row: u32, piece: u32, part: u32) -> f32 {
    var sum = 0.0;
    for (var i = 4u; i + 4u <= LANE_CHUNKS; i += 4u) {
        let chunk = part + i * PARTS;
        let a = load_chunk(weight_row, piece + chunk);
        let b = load_chunk(weight_row, piece + chunk + PARTS);
        let c = load_chunk(weight_row, piece + chunk + 2u * PARTS);
        let d = load_chunk(weight_row, piece + chunk + 3u * PARTS);
        sum += chunk_dot(a, 0u, chunk) + chunk_dot(b, 0u, chunk + PARTS)
            + chunk_dot(c, 0u, chunk + 2u * PARTS) + chunk_dot(d, 0u, chunk + 3u * PARTS);
    }
    if LANE_CHUNKS > 4u && LANE_CHUNKS % 4u != 0u {
        let chunk = part + LANE_CHUNKS / 4u * 4u * PARTS;
        let a = load_chunk(weight_row, piece + chunk);
        var b = a;
        var c = a;
        if LANE_CHUNKS % 4u > 1u { b = load_chunk(weight_row, piece + chunk + PARTS); }
        if LANE_CHUNKS % 4u > 2u { c = load_chunk(weight_row, piece + chunk + 2u * PARTS); }
        sum += chunk_dot(a, 0u, chunk);
        if LANE_CHUNKS % 4u > 1u { sum += chunk_dot(b, 0u, chunk + PARTS); }
        if LANE_CHUNKS % 4u > 2u { sum += chunk_dot(c, 0u, chunk + 2u * PARTS); }
    }
    return sum;
}

// What a lane makes of a piece of x; nothing, where there are more lanes than halves of chunks.
fn values_of_piece(row: u32, slot: u32, piece: u32, lane: u32) -> Values {
    var values: Values;
    if lane / 2u < min(PIECE, CHUNKS - piece) { values = input_values(row, slot, piece, lane); }
    return values;
}

fn stage_piece(row: u32, piece: u32, lane: u32, values: Values) {
    stage(row, lane / 2u, lane % 2u, lane / 2u < min(PIECE, CHUNKS - piece), values);
}

fn store(row: u32, slot: u32, output: u32, total: vec2<f32>) {
    let value = total * params.factor;
    y[params.y_at + row * params.y_stride + slot * params.outputs + output] = finish(row, output, value.x, value.y);
}

fn kernel(workgroup: vec3<u32>, lane: u32) {
    let slot = workgroup.z;
    let first_row = workgroup.y * ROWS;
    let part = lane % PARTS;
    var output = workgroup.x * TILES * OUTPUTS + lane / PARTS;
    // Rows before the shard wrap around to large numbers, so one comparison covers both ends.
    let shift = matrix(first_row, slot) * params.matrix_rows + params.first_row - params.shard_first;
    var here = output < params.outputs && output + shift < params.shard_rows;
    // A lane without an output reads the shard's first row, for nothing.
    var weight_row = select(0u, output + shift, here);
    if EVEN && ROWS == 1u {
        var held = hold(weight_row, part);
        prepare(lane, workgroup.x == 0u && slot == 0u);
        var values = values_of_piece(first_row, slot, 0u, lane);
        for (var tile = 0u; tile < TILES; tile++) {
            var sum = vec2<f32>();
            for (var piece = 0u; piece < CHUNKS; piece += PIECE) {
                let now = held;
                if tile == 0u {
                    if piece > 0u { workgroupBarrier(); }
                    stage_piece(0u, piece, lane, values);
                    // The next piece is under way while this one is multiplied.
                    if piece + PIECE < CHUNKS {
                        values = values_of_piece(first_row, slot, piece + PIECE, lane);
                        held = hold(weight_row, piece + PIECE + part);
                    }
                    workgroupBarrier();
                }
                sum.x += held_dot(now, part);
                if LANE_CHUNKS > 4u { sum.x += rest_dot(weight_row, piece, part); }
                if PAIRED {
                    let pair = hold(weight_row + params.pair, piece + part);
                    sum.y += held_dot(pair, part);
                    if LANE_CHUNKS > 4u { sum.y += rest_dot(weight_row + params.pair, piece, part); }
                }
            }
            let done = output;
            let was_here = here;
            if TILES > 1u {
                output += OUTPUTS;
                here = output < params.outputs && output + shift < params.shard_rows;
                weight_row = select(0u, output + shift, here);
                held = hold(weight_row, part);
            }
            let total = part_sum(sum, lane);
            if part == 0u && was_here && first_row < max(step.rows, 1u) { store(first_row, slot, done, total); }
        }
    } else {
        prepare(lane, workgroup.x == 0u && slot == 0u);
        for (var tile = 0u; tile < TILES; tile++) {
            var sums: array<vec2<f32>, ROWS>;
            for (var piece = 0u; piece < CHUNKS; piece += PIECE) {
                if tile == 0u {
                    if piece > 0u { workgroupBarrier(); }
                    for (var row = 0u; row < ROWS; row++) {
                        stage_piece(row, piece, lane, values_of_piece(first_row + row, slot, piece, lane));
                    }
                    workgroupBarrier();
                }
                for (var chunk = part; here && chunk < min(PIECE, CHUNKS - piece); chunk += PARTS) {
                    let weight = load_chunk(weight_row, piece + chunk);
                    for (var row = 0u; row < ROWS; row++) { sums[row].x += chunk_dot(weight, row, chunk); }
                    if PAIRED {
                        let pair = load_chunk(weight_row + params.pair, piece + chunk);
                        for (var row = 0u; row < ROWS; row++) { sums[row].y += chunk_dot(pair, row, chunk); }
                    }
                }
            }
            for (var row = 0u; row < ROWS; row++) {
                let total = part_sum(sums[row], lane);
                if part == 0u && here && first_row + row < max(step.rows, 1u) {
                    store(first_row + row, slot, output, total);
                }
            }
            output += OUTPUTS;
            here = output < params.outputs && output + shift < params.shard_rows;
            weight_row = select(0u, output + shift, here);
        }
    }
}
