// linear_few: y = epilogue(x · Wᵀ) for a few rows of x, in registers: a lane decodes a weight once for all rows.
//
// Work split   one workgroup computes ROWS rows (x) of TOGETHER · LANES / PARTS rows of W (y). PARTS lanes share TOGETHER rows
//              of W, a chunk of 32 values each at a time, and multiply every weight with all rows of x, which the workgroup
//              brings to workgroup memory PIECE chunks at a time. With SPAN < CHUNKS, workgroups share the width too, and y has
//              a row of sums for each, to be added up. Of a pair, a lane has gates and their ups.
// Reads        x [rows, width], weight as packed planes        Writes   y [rows, splits, outputs]
// Slots        format: WIDE_BYTES, chunk_scales, chunk_bytes     reduce: part_sum of a subgroup     epilogue: PAIRED, finish
// Constants    LANES, PARTS, TOGETHER (2, 4), ROWS (1 to 8), CHUNKS (of a row), SPAN (a multiple of PIECE), PIECE (a multiple of
//              PARTS)

@group(1) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(1) @binding(3) var<storage, read_write> y: array<f32>;

const GROUPS: u32 = LANES / PARTS;
// Rows of W that belong to different outputs: the others are ups.
const OUTPUTS: u32 = TOGETHER / (1u + u32(PAIRED));
const TILE_OUTPUTS: u32 = GROUPS * OUTPUTS;
// Chunks lie side by side, so that neighbouring lanes read neighbouring words; one more than there are, so that they
// also write to different banks.
const STRIDE: u32 = PIECE + 1u;
const X_QUADS: u32 = 8u * PIECE * ROWS;

const_assert TOGETHER == 2u || TOGETHER == 4u;
const_assert PIECE % PARTS == 0u && SPAN % PIECE == 0u && CHUNKS % SPAN == 0u;

var<workgroup> staged: array<vec4<f32>, ROWS * 8u * STRIDE>;

struct Chunk { bytes: Bytes, scales: vec4<f32> }

// The same chunk of a lane's rows of W.
struct Chunks { a: Chunk, b: Chunk, c: Chunk, d: Chunk }

// Sums of each row of x with a lane's rows of W. Written out, because an array that a loop indexes would lie in memory.
struct Sums {
    a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>,
    e: vec4<f32>, f: vec4<f32>, g: vec4<f32>, h: vec4<f32>,
}

// The row of the buffer with the weights of an output. Those before the shard wrap around to large numbers, so one
// comparison covers both ends.
fn weight_row(output: u32) -> u32 { return params.first_row + output - params.shard_first; }

// What lies outside the shard is computed with its last row and not written.
fn row_within(output: u32) -> u32 { return min(weight_row(output), params.shard_rows - 1u); }

fn load_chunk(row: u32, chunk: u32) -> Chunk { return Chunk(chunk_bytes(row, chunk), chunk_scales(row, chunk)); }

fn load_chunks(rows: vec4<u32>, chunk: u32) -> Chunks {
    var chunks: Chunks;
    chunks.a = load_chunk(rows.x, chunk);
    chunks.b = load_chunk(rows.y, chunk);
    if TOGETHER > 2u {
        chunks.c = load_chunk(rows.z, chunk);
        chunks.d = load_chunk(rows.w, chunk);
    }
    return chunks;
}

// Scale and offset of a lane's rows of W, for the fractions that `decoded` makes of quants.
struct Scales { scale: vec4<f32>, offset: vec4<f32> }

fn scales_of(a: vec2<f32>, b: vec2<f32>, c: vec2<f32>, d: vec2<f32>) -> Scales {
    let scale = 256.0 * vec4<f32>(a.x, b.x, c.x, d.x);
    return Scales(scale, vec4<f32>(a.y, b.y, c.y, d.y) - select(1.5, 1.0, WIDE_BYTES) * scale);
}

// Four quants times their scale, plus an offset. A byte becomes the upper bits of a fraction from one to two, which takes fewer
// instructions than a conversion; what this adds is part of `offset`.
fn decoded(word: u32, scale: f32, offset: f32) -> vec4<f32> {
    let bytes = select(word ^ 0x80808080u, word, WIDE_BYTES);
    let bits = vec4<u32>(bytes << 15u, bytes << 7u, bytes >> 1u, bytes >> 9u);
    let fractions = bitcast<vec4<f32>>((bits & vec4<u32>(0x007f8000u)) | vec4<u32>(0x3f800000u));
    return fma(fractions, vec4<f32>(scale), vec4<f32>(offset));
}

// Adds four products to each of four sums, or of two.
fn plus(sum: vec4<f32>, x: vec4<f32>, w: mat4x4<f32>) -> vec4<f32> {
    let first = fma(vec4<f32>(x.x), w[0], sum);
    let second = fma(vec4<f32>(x.y), w[1], first);
    let third = fma(vec4<f32>(x.z), w[2], second);
    return fma(vec4<f32>(x.w), w[3], third);
}

fn plus2(sum: vec2<f32>, x: vec4<f32>, w: mat4x2<f32>) -> vec2<f32> {
    let first = fma(vec2<f32>(x.x), w[0], sum);
    let second = fma(vec2<f32>(x.y), w[1], first);
    let third = fma(vec2<f32>(x.z), w[2], second);
    return fma(vec2<f32>(x.w), w[3], third);
}

fn plus_row(sum: vec4<f32>, at: u32, w: mat4x4<f32>) -> vec4<f32> {
    let quad = staged[at];
    if TOGETHER > 2u { return plus(sum, quad, w); }
    let two = mat4x2<f32>(w[0].xy, w[1].xy, w[2].xy, w[3].xy);
    return vec4<f32>(plus2(sum.xy, quad, two), 0.0, 0.0);
}

// Multiplies one quad of a chunk: words of the same place in each row of W.
fn add_quad(sums: Sums, words: vec4<u32>, scales: Scales, at: u32) -> Sums {
    let first = decoded(words.x, scales.scale.x, scales.offset.x);
    let second = decoded(words.y, scales.scale.y, scales.offset.y);
    var third: vec4<f32>;
    var fourth: vec4<f32>;
    if TOGETHER > 2u {
        third = decoded(words.z, scales.scale.z, scales.offset.z);
        fourth = decoded(words.w, scales.scale.w, scales.offset.w);
    }
    let w = transpose(mat4x4<f32>(first, second, third, fourth));
    var next = sums;
    next.a = plus_row(next.a, at, w);
    if ROWS > 1u { next.b = plus_row(next.b, at + 8u * STRIDE, w); }
    if ROWS > 2u { next.c = plus_row(next.c, at + 16u * STRIDE, w); }
    if ROWS > 3u { next.d = plus_row(next.d, at + 24u * STRIDE, w); }
    if ROWS > 4u { next.e = plus_row(next.e, at + 32u * STRIDE, w); }
    if ROWS > 5u { next.f = plus_row(next.f, at + 40u * STRIDE, w); }
    if ROWS > 6u { next.g = plus_row(next.g, at + 48u * STRIDE, w); }
    if ROWS > 7u { next.h = plus_row(next.h, at + 56u * STRIDE, w); }
    return next;
}

// The next two quads come first.
fn turned(bytes: Bytes) -> Bytes { return Bytes(bytes.even.yzwx, bytes.odd.yzwx); }

fn add_chunks(sums: Sums, chunks: Chunks, chunk: u32) -> Sums {
    var a = chunks.a.bytes;
    var b = chunks.b.bytes;
    var c = chunks.c.bytes;
    var d = chunks.d.bytes;
    // Of the first sixteen values, then of the others.
    var scales = scales_of(chunks.a.scales.xy, chunks.b.scales.xy, chunks.c.scales.xy, chunks.d.scales.xy);
    let others = scales_of(chunks.a.scales.zw, chunks.b.scales.zw, chunks.c.scales.zw, chunks.d.scales.zw);
    var next = sums;
    // Compilers cannot unroll this loop, whose end they do not know.
    let end = 4u + (step.rows >> 31u);
    for (var i = 0u; i < end; i++) {
        let at = chunk + 2u * i * STRIDE;
        next = add_quad(next, vec4<u32>(a.even.x, b.even.x, c.even.x, d.even.x), scales, at);
        next = add_quad(next, vec4<u32>(a.odd.x, b.odd.x, c.odd.x, d.odd.x), scales, at + STRIDE);
        a = turned(a);
        b = turned(b);
        c = turned(c);
        d = turned(d);
        if i == 1u { scales = others; }
    }
    return next;
}

// A quad of a piece of the rows of x. Those beyond the last are zero.
fn x_quad(first_row: u32, first_chunk: u32, index: u32) -> vec4<f32> {
    let row = first_row + index / (8u * PIECE);
    if index >= X_QUADS || row >= step.rows { return vec4<f32>(); }
    return x[(params.x_at + row * params.x_stride) / 4u + 8u * first_chunk + index % (8u * PIECE)];
}

fn put_x(index: u32, value: vec4<f32>) {
    if index >= X_QUADS { return; }
    let four = index % (8u * PIECE);
    staged[(index / (8u * PIECE) * 8u + four % 8u) * STRIDE + four / 8u] = value;
}

// Brings a piece of the rows of x, several loads at a time.
fn bring_x(first_row: u32, first_chunk: u32, lane: u32) {
    for (var first = lane; first < X_QUADS; first += 4u * LANES) {
        let a = x_quad(first_row, first_chunk, first);
        let b = x_quad(first_row, first_chunk, first + LANES);
        let c = x_quad(first_row, first_chunk, first + 2u * LANES);
        let d = x_quad(first_row, first_chunk, first + 3u * LANES);
        put_x(first, a);
        put_x(first + LANES, b);
        put_x(first + 2u * LANES, c);
        put_x(first + 3u * LANES, d);
    }
}

fn pick(sums: Sums, row: u32) -> vec4<f32> {
    var picked = sums.a;
    if ROWS > 1u && row == 1u { picked = sums.b; }
    if ROWS > 2u && row == 2u { picked = sums.c; }
    if ROWS > 3u && row == 3u { picked = sums.d; }
    if ROWS > 4u && row == 4u { picked = sums.e; }
    if ROWS > 5u && row == 5u { picked = sums.f; }
    if ROWS > 6u && row == 6u { picked = sums.g; }
    if ROWS > 7u && row == 7u { picked = sums.h; }
    return picked;
}

fn all_parts(sum: vec4<f32>, lane: u32) -> vec4<f32> {
    if TOGETHER > 2u { return vec4<f32>(part_sum(sum.xy, lane), part_sum(sum.zw, lane)); }
    return vec4<f32>(part_sum(sum.xy, lane), 0.0, 0.0);
}

fn write(row: u32, split: u32, output: u32, value: f32, second: f32) {
    var here = output < params.outputs && weight_row(output) < params.shard_rows;
    if PAIRED { here = here && weight_row(output + params.pair) < params.shard_rows; }
    if here {
        let at = params.y_at + row * params.y_stride + split * params.outputs + output;
        y[at] = finish(row, output, params.factor * value, params.factor * second);
    }
}

fn kernel(workgroup: vec3<u32>, lane: u32) {
    let tiles = (params.outputs + TILE_OUTPUTS - 1u) / TILE_OUTPUTS;
    let split = workgroup.y / tiles;
    let output = workgroup.y % tiles * TILE_OUTPUTS + lane / PARTS;
    let first_row = workgroup.x * ROWS;
    let first_chunk = split * SPAN;
    let part = lane % PARTS;
    // Gates first, then ups.
    var outputs = vec4<u32>(output, output + GROUPS, output + 2u * GROUPS, output + 3u * GROUPS);
    if PAIRED && TOGETHER == 2u { outputs.y = output + params.pair; }
    if PAIRED && TOGETHER == 4u {
        outputs.z = output + params.pair;
        outputs.w = output + GROUPS + params.pair;
    }
    let rows = vec4<u32>(
        row_within(outputs.x), row_within(outputs.y), row_within(outputs.z), row_within(outputs.w));

    var sums: Sums;
    for (var piece = 0u; piece < SPAN; piece += PIECE) {
        // The first weights are asked for before anything is waited for.
        var coming = load_chunks(rows, first_chunk + piece + part);
        if piece > 0u { workgroupBarrier(); }
        bring_x(first_row, first_chunk + piece, lane);
        workgroupBarrier();
        for (var chunk = part; chunk < PIECE; chunk += PARTS) {
            if chunk > part { coming = load_chunks(rows, first_chunk + piece + chunk); }
            sums = add_chunks(sums, coming, chunk);
        }
    }

    sums.a = all_parts(sums.a, lane);
    if ROWS > 1u { sums.b = all_parts(sums.b, lane); }
    if ROWS > 2u { sums.c = all_parts(sums.c, lane); }
    if ROWS > 3u { sums.d = all_parts(sums.d, lane); }
    if ROWS > 4u { sums.e = all_parts(sums.e, lane); }
    if ROWS > 5u { sums.f = all_parts(sums.f, lane); }
    if ROWS > 6u { sums.g = all_parts(sums.g, lane); }
    if ROWS > 7u { sums.h = all_parts(sums.h, lane); }
    // All lanes of a part have all sums, and each writes some rows.
    for (var own = part; own < ROWS; own += PARTS) {
        let row = first_row + own;
        if row >= step.rows { continue; }
        let sum = pick(sums, own);
        if PAIRED && TOGETHER == 2u {
            write(row, split, outputs.x, sum.x, sum.y);
        } else if PAIRED {
            write(row, split, outputs.x, sum.x, sum.z);
            write(row, split, outputs.y, sum.y, sum.w);
        } else {
            write(row, split, outputs.x, sum.x, 0.0);
            write(row, split, outputs.y, sum.y, 0.0);
            if TOGETHER > 2u {
                write(row, split, outputs.z, sum.z, 0.0);
                write(row, split, outputs.w, sum.w, 0.0);
            }
        }
    }
}
