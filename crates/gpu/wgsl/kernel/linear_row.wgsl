// linear_row: y = W · x for one row of x or a few, and for each expert that a row is routed to.
//
// Work split   one workgroup computes TILES times LANES / PARTS outputs (x) of ROWS rows (y) and one expert slot (z); with
//              ROWS_FIRST rows are x and outputs are y, so that workgroups side by side read the same weights;
//              PARTS lanes share an output and walk along x a chunk of 32 values at a time. Every workgroup first makes
//              its own copy of x in workgroup memory, PIECE chunks at once: what comes before the product is computed
//              on the way, which costs less than a dispatch of its own.
// Reads        what the input slot reads, weight as packed planes        Writes   y
// Slots        arithmetic: stage, load_chunk, chunk_dot     format     select: matrix     epilogue: PAIRED, finish
//              input: STAGED_AHEAD, prepare, input4     reduce: workgroup_sum, part_sum     entry
// Constants    LANES, PARTS, ROWS, CHUNKS (of a row), PIECE, TILES (1 where x has more than one piece), UNROLL (1 to 4),
//              ROWS_FIRST (0, 1), APART (1: each piece of x has workgroups of its own, and y a row of sums for each, to be added up)

@group(1) @binding(2) var<storage, read_write> y: array<f32>;

const OUTPUTS: u32 = LANES / PARTS;

// Whether all lanes have as many chunks of every piece, a multiple of UNROLL.
const EVEN: bool = PIECE % (UNROLL * PARTS) == 0u && CHUNKS % PIECE == 0u;

// Rounds in which all lanes together stage a piece of x.
const ROUNDS: u32 = (8u * PIECE + LANES - 1u) / LANES;

fn value_of(row: u32, slot: u32, piece: u32, four: u32) -> vec4<f32> {
    if four >= 8u * min(PIECE, CHUNKS - piece) { return vec4<f32>(); }
    return input4(row, slot, 8u * piece + four);
}

// Stages a piece of x, several loads at a time.
fn stage_piece(row: u32, x_row: u32, slot: u32, piece: u32, lane: u32) {
    let end = 8u * min(PIECE, CHUNKS - piece);
    for (var round = 0u; round < ROUNDS; round += 4u) {
        let four = lane + round * LANES;
        let a = value_of(x_row, slot, piece, four);
        var b = a;
        var c = a;
        var d = a;
        if ROUNDS > 1u { b = value_of(x_row, slot, piece, four + LANES); }
        if ROUNDS > 2u { c = value_of(x_row, slot, piece, four + 2u * LANES); }
        if ROUNDS > 3u { d = value_of(x_row, slot, piece, four + 3u * LANES); }
        stage(row, four, four < end, a);
        if ROUNDS > 1u { stage(row, four + LANES, four + LANES < end, b); }
        if ROUNDS > 2u { stage(row, four + 2u * LANES, four + 2u * LANES < end, c); }
        if ROUNDS > 3u { stage(row, four + 3u * LANES, four + 3u * LANES < end, d); }
    }
}

// A slot of y is an expert's, or of a piece that is apart.
fn store(row: u32, slot: u32, output: u32, total: vec2<f32>) {
    let value = total * params.factor;
    y[params.y_at + row * params.y_stride + slot * params.outputs + output] = finish(row, output, value.x, value.y);
}

// Products of one row with the chunks that a lane has of a piece, several loads at a time.
fn row_dots(weight_row: u32, piece: u32, part: u32) -> vec2<f32> {
    var sum = vec2<f32>();
    for (var chunk = part; chunk < PIECE; chunk += UNROLL * PARTS) {
        let a = load_chunk(weight_row, piece + chunk);
        var b = a;
        var c = a;
        var d = a;
        if UNROLL > 1u { b = load_chunk(weight_row, piece + chunk + PARTS); }
        if UNROLL > 2u { c = load_chunk(weight_row, piece + chunk + 2u * PARTS); }
        if UNROLL > 3u { d = load_chunk(weight_row, piece + chunk + 3u * PARTS); }
        sum.x += chunk_dot(a, 0u, chunk);
        if UNROLL > 1u { sum.x += chunk_dot(b, 0u, chunk + PARTS); }
        if UNROLL > 2u { sum.x += chunk_dot(c, 0u, chunk + 2u * PARTS); }
        if UNROLL > 3u { sum.x += chunk_dot(d, 0u, chunk + 3u * PARTS); }
        if PAIRED {
            sum.y += chunk_dot(load_chunk(weight_row + params.pair, piece + chunk), 0u, chunk);
            if UNROLL > 1u {
                let pair = load_chunk(weight_row + params.pair, piece + chunk + PARTS);
                sum.y += chunk_dot(pair, 0u, chunk + PARTS);
            }
            if UNROLL > 2u {
                let pair = load_chunk(weight_row + params.pair, piece + chunk + 2u * PARTS);
                sum.y += chunk_dot(pair, 0u, chunk + 2u * PARTS);
            }
            if UNROLL > 3u {
                let pair = load_chunk(weight_row + params.pair, piece + chunk + 3u * PARTS);
                sum.y += chunk_dot(pair, 0u, chunk + 3u * PARTS);
            }
        }
    }
    return sum;
}

// Sums of the rows of x; in a pair, also those with the second weight. Written out, because an array that a loop indexes
// would lie in memory.
struct Sums {
    a: vec2<f32>, b: vec2<f32>, c: vec2<f32>, d: vec2<f32>,
    e: vec2<f32>, f: vec2<f32>, g: vec2<f32>, h: vec2<f32>,
}

// Adds the products of a chunk of the weight with that chunk of each row.
fn add_chunk(sums: Sums, weight: Chunk, chunk: u32) -> Sums {
    var next = sums;
    next.a.x += chunk_dot(weight, 0u, chunk);
    if ROWS > 1u { next.b.x += chunk_dot(weight, 1u, chunk); }
    if ROWS > 2u { next.c.x += chunk_dot(weight, 2u, chunk); }
    if ROWS > 3u { next.d.x += chunk_dot(weight, 3u, chunk); }
    if ROWS > 4u { next.e.x += chunk_dot(weight, 4u, chunk); }
    if ROWS > 5u { next.f.x += chunk_dot(weight, 5u, chunk); }
    if ROWS > 6u { next.g.x += chunk_dot(weight, 6u, chunk); }
    if ROWS > 7u { next.h.x += chunk_dot(weight, 7u, chunk); }
    return next;
}

// The same for the second weight of a pair.
fn add_pair(sums: Sums, weight: Chunk, chunk: u32) -> Sums {
    var next = sums;
    next.a.y += chunk_dot(weight, 0u, chunk);
    if ROWS > 1u { next.b.y += chunk_dot(weight, 1u, chunk); }
    if ROWS > 2u { next.c.y += chunk_dot(weight, 2u, chunk); }
    if ROWS > 3u { next.d.y += chunk_dot(weight, 3u, chunk); }
    if ROWS > 4u { next.e.y += chunk_dot(weight, 4u, chunk); }
    if ROWS > 5u { next.f.y += chunk_dot(weight, 5u, chunk); }
    if ROWS > 6u { next.g.y += chunk_dot(weight, 6u, chunk); }
    if ROWS > 7u { next.h.y += chunk_dot(weight, 7u, chunk); }
    return next;
}

// The products of several rows with the chunks that a lane has of a piece, several loads at a time.
fn rows_dots(sums: Sums, weight_row: u32, piece: u32, part: u32) -> Sums {
    var next = sums;
    for (var chunk = part; chunk < PIECE; chunk += UNROLL * PARTS) {
        let a = load_chunk(weight_row, piece + chunk);
        var b = a;
        var c = a;
        var d = a;
        if UNROLL > 1u { b = load_chunk(weight_row, piece + chunk + PARTS); }
        if UNROLL > 2u { c = load_chunk(weight_row, piece + chunk + 2u * PARTS); }
        if UNROLL > 3u { d = load_chunk(weight_row, piece + chunk + 3u * PARTS); }
        next = add_chunk(next, a, chunk);
        if UNROLL > 1u { next = add_chunk(next, b, chunk + PARTS); }
        if UNROLL > 2u { next = add_chunk(next, c, chunk + 2u * PARTS); }
        if UNROLL > 3u { next = add_chunk(next, d, chunk + 3u * PARTS); }
        if PAIRED {
            let p = load_chunk(weight_row + params.pair, piece + chunk);
            var q = p;
            var r = p;
            var s = p;
            if UNROLL > 1u { q = load_chunk(weight_row + params.pair, piece + chunk + PARTS); }
            if UNROLL > 2u { r = load_chunk(weight_row + params.pair, piece + chunk + 2u * PARTS); }
            if UNROLL > 3u { s = load_chunk(weight_row + params.pair, piece + chunk + 3u * PARTS); }
            next = add_pair(next, p, chunk);
            if UNROLL > 1u { next = add_pair(next, q, chunk + PARTS); }
            if UNROLL > 2u { next = add_pair(next, r, chunk + 2u * PARTS); }
            if UNROLL > 3u { next = add_pair(next, s, chunk + 3u * PARTS); }
        }
    }
    return next;
}

// Adds up what the lanes that share an output have of one row, and stores it.
fn finish_row(sum: vec2<f32>, row: u32, lane: u32, slot: u32, output: u32, here: bool) {
    let total = part_sum(sum, lane);
    if lane % PARTS == 0u && here && row < max(step.rows, 1u) { store(row, slot, output, total); }
}

fn kernel(workgroup: vec3<u32>, lane: u32) {
    let slot = workgroup.z;
    let outputs_at = select(workgroup.x, workgroup.y, ROWS_FIRST == 1u);
    let rows_at = select(workgroup.y, workgroup.x, ROWS_FIRST == 1u);
    // All workgroups of a piece that is apart come before those of the next.
    let groups = (params.outputs + TILES * OUTPUTS - 1u) / (TILES * OUTPUTS);
    let group = select(outputs_at, outputs_at % groups, APART == 1u);
    let first_piece = select(0u, outputs_at / groups * PIECE, APART == 1u);
    let pieces_end = select(CHUNKS, first_piece + PIECE, APART == 1u);
    let first_row = rows_at * ROWS;
    let part = lane % PARTS;
    // Rows before the shard wrap around to large numbers, so one comparison covers both ends.
    let shift = matrix(first_row, slot) * params.matrix_rows + params.first_row - params.shard_first;
    prepare(lane, first_piece, outputs_at == 0u && slot == 0u);
    for (var tile = 0u; tile < TILES; tile++) {
        let output = (group * TILES + tile) * OUTPUTS + lane / PARTS;
        let weight_row = output + shift;
        let here = output < params.outputs && weight_row < params.shard_rows;
        var sums: Sums;
        for (var piece = first_piece; piece < pieces_end; piece += PIECE) {
            if tile == 0u && !STAGED_AHEAD {
                if piece > first_piece { workgroupBarrier(); }
                for (var row = 0u; row < ROWS; row++) { stage_piece(row, first_row + row, slot, piece, lane); }
                workgroupBarrier();
            }
            if EVEN && ROWS == 1u {
                if here { sums.a += row_dots(weight_row, piece, part); }
            } else if EVEN {
                if here { sums = rows_dots(sums, weight_row, piece, part); }
            } else {
                for (var chunk = part; here && chunk < min(PIECE, CHUNKS - piece); chunk += PARTS) {
                    sums = add_chunk(sums, load_chunk(weight_row, piece + chunk), chunk);
                    if PAIRED {
                        sums = add_pair(sums, load_chunk(weight_row + params.pair, piece + chunk), chunk);
                    }
                }
            }
        }
        let y_slot = slot + first_piece / PIECE;
        finish_row(sums.a, first_row, lane, y_slot, output, here);
        if ROWS > 1u { finish_row(sums.b, first_row + 1u, lane, y_slot, output, here); }
        if ROWS > 2u { finish_row(sums.c, first_row + 2u, lane, y_slot, output, here); }
        if ROWS > 3u { finish_row(sums.d, first_row + 3u, lane, y_slot, output, here); }
        if ROWS > 4u { finish_row(sums.e, first_row + 4u, lane, y_slot, output, here); }
        if ROWS > 5u { finish_row(sums.f, first_row + 5u, lane, y_slot, output, here); }
        if ROWS > 6u { finish_row(sums.g, first_row + 6u, lane, y_slot, output, here); }
        if ROWS > 7u { finish_row(sums.h, first_row + 7u, lane, y_slot, output, here); }
    }
}
