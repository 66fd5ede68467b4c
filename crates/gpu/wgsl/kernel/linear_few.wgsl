// linear_few: y = W · x for a few rows of x, as when several conversations are decoded together.
//
// Work split   one workgroup computes TILES times LANES / PARTS times four columns (x) of ROWS rows (y). A column is a row of
//              the weight; in a pair, two of four are gates and two are their ups. PARTS lanes share four columns and walk
//              along x a chunk of 32 values at a time. All lanes first bring a piece of x to workgroup memory; then each
//              decodes four values of its columns and multiplies them with all rows, so that a weight is decoded once, and
//              a value of x is read once for four columns.
// Reads        x [rows, width], weight as packed planes        Writes   y [rows, outputs]; with several splits, the sums of
//              each beside those of the one before it
// Slots        format: chunk_scales, chunk_quants     epilogue: PAIRED, finish     reduce: part_sum     entry
// Constants    LANES, PARTS, ROWS (4, 8), CHUNKS (of a split of the width), PIECE (chunks of x in workgroup memory, a multiple
//              of 8), TILES (1 where a split has more than one piece)

@group(1) @binding(2) var<storage, read_write> y: array<f32>;
@group(1) @binding(3) var<storage, read> x: array<vec4<f32>>;

const_assert PIECE % 8u == 0u && (TILES == 1u || PIECE >= CHUNKS);
const_assert ROWS == 4u || ROWS == 8u;

const WIDE: u32 = 8u * PIECE;
const TILE_OUTPUTS: u32 = LANES / PARTS * select(4u, 2u, PAIRED);

// By row, then by the quad's place in its chunk, then by chunk. Chunks change places within groups of eight, so that lanes
// that write quads of one chunk, or read quads of several, use different banks.
var<workgroup> staged: array<vec4<f32>, ROWS * WIDE>;

fn place(quad: u32, chunk: u32) -> u32 { return quad * PIECE + (chunk ^ quad); }

// One sum for each row and column.
struct Sums {
    a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>,
    e: vec4<f32>, f: vec4<f32>, g: vec4<f32>, h: vec4<f32>,
}

fn load_x(first_row: u32, index: u32, first: u32, count: u32) -> vec4<f32> {
    let row = first_row + index / WIDE;
    let four = index % WIDE;
    if index >= ROWS * WIDE || row >= max(step.rows, 1u) || four >= 8u * count { return vec4<f32>(); }
    return x[(params.x_at + row * params.x_stride) / 4u + 8u * first + four];
}

fn put_x(index: u32, value: vec4<f32>) {
    if index < ROWS * WIDE {
        let four = index % WIDE;
        staged[index / WIDE * WIDE + place(four % 8u, four / 8u)] = value;
    }
}

// Brings chunks from `first` on to workgroup memory, several loads at a time.
fn stage_x(first_row: u32, first: u32, count: u32, lane: u32) {
    for (var index = lane; index < ROWS * WIDE; index += 4u * LANES) {
        let p = load_x(first_row, index, first, count);
        let q = load_x(first_row, index + LANES, first, count);
        let r = load_x(first_row, index + 2u * LANES, first, count);
        let s = load_x(first_row, index + 3u * LANES, first, count);
        put_x(index, p);
        put_x(index + LANES, q);
        put_x(index + 2u * LANES, r);
        put_x(index + 3u * LANES, s);
    }
}

// The values of a chunk, four in each.
fn decoded(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let scales = chunk_scales(row, chunk);
    let q = chunk_quants(row, chunk);
    let first = vec4<f32>(scales.y);
    let other = vec4<f32>(scales.w);
    return array<vec4<f32>, 8>(
        fma(q[0], vec4<f32>(scales.x), first), fma(q[1], vec4<f32>(scales.x), first),
        fma(q[2], vec4<f32>(scales.x), first), fma(q[3], vec4<f32>(scales.x), first),
        fma(q[4], vec4<f32>(scales.z), other), fma(q[5], vec4<f32>(scales.z), other),
        fma(q[6], vec4<f32>(scales.z), other), fma(q[7], vec4<f32>(scales.z), other));
}

// Adds the products of four values of x with those of four columns.
fn add_row(sum: vec4<f32>, at: u32, w: mat4x4<f32>) -> vec4<f32> {
    let v = staged[at];
    return fma(vec4<f32>(v.w), w[3], fma(vec4<f32>(v.z), w[2], fma(vec4<f32>(v.y), w[1], fma(vec4<f32>(v.x), w[0], sum))));
}

fn add_rows(sums: Sums, at: u32, columns: mat4x4<f32>) -> Sums {
    let w = transpose(columns);
    var next = sums;
    next.a = add_row(sums.a, at, w);
    next.b = add_row(sums.b, at + WIDE, w);
    next.c = add_row(sums.c, at + 2u * WIDE, w);
    next.d = add_row(sums.d, at + 3u * WIDE, w);
    if ROWS > 4u {
        next.e = add_row(sums.e, at + 4u * WIDE, w);
        next.f = add_row(sums.f, at + 5u * WIDE, w);
        next.g = add_row(sums.g, at + 6u * WIDE, w);
        next.h = add_row(sums.h, at + 7u * WIDE, w);
    }
    return next;
}

// The products of one chunk of four rows of the weight.
fn add_chunk(sums: Sums, rows: vec4<u32>, chunk: u32, at: u32) -> Sums {
    let p = decoded(rows.x, chunk);
    let q = decoded(rows.y, chunk);
    let r = decoded(rows.z, chunk);
    let s = decoded(rows.w, chunk);
    var next = add_rows(sums, place(0u, at), mat4x4<f32>(p[0], q[0], r[0], s[0]));
    next = add_rows(next, place(1u, at), mat4x4<f32>(p[1], q[1], r[1], s[1]));
    next = add_rows(next, place(2u, at), mat4x4<f32>(p[2], q[2], r[2], s[2]));
    next = add_rows(next, place(3u, at), mat4x4<f32>(p[3], q[3], r[3], s[3]));
    next = add_rows(next, place(4u, at), mat4x4<f32>(p[4], q[4], r[4], s[4]));
    next = add_rows(next, place(5u, at), mat4x4<f32>(p[5], q[5], r[5], s[5]));
    next = add_rows(next, place(6u, at), mat4x4<f32>(p[6], q[6], r[6], s[6]));
    return add_rows(next, place(7u, at), mat4x4<f32>(p[7], q[7], r[7], s[7]));
}

// Where a lane's results go.
struct Target {
    writes: bool,
    output: u32,              // the first
    here: vec4<bool>,         // columns that there are, and that this shard has
    split: u32,
}

// Adds up what the lanes that share columns have of one row, and stores it.
fn finish_row(row: u32, sum: vec4<f32>, lane: u32, to: Target) {
    let value = vec4<f32>(part_sum(sum.xy, lane), part_sum(sum.zw, lane)) * params.factor;
    if !to.writes || row >= max(step.rows, 1u) { return; }
    let at = params.y_at + row * params.y_stride + to.split * params.outputs + to.output;
    if PAIRED {
        if to.here.x { y[at] = finish(row, to.output, value.x, value.z); }
        if to.here.y { y[at + 1u] = finish(row, to.output + 1u, value.y, value.w); }
    } else {
        if to.here.x { y[at] = finish(row, to.output, value.x, 0.0); }
        if to.here.y { y[at + 1u] = finish(row, to.output + 1u, value.y, 0.0); }
        if to.here.z { y[at + 2u] = finish(row, to.output + 2u, value.z, 0.0); }
        if to.here.w { y[at + 3u] = finish(row, to.output + 3u, value.w, 0.0); }
    }
}

fn kernel(workgroup: vec3<u32>, lane: u32) {
    // All workgroups of a split come before those of the next.
    let groups = (params.outputs + TILES * TILE_OUTPUTS - 1u) / (TILES * TILE_OUTPUTS);
    let group = workgroup.x % groups;
    let split = workgroup.x / groups;
    let first_row = workgroup.y * ROWS;
    let part = lane % PARTS;
    // Rows before the shard wrap around to large numbers, so one comparison covers both ends.
    let shift = params.first_row - params.shard_first;
    for (var tile = 0u; tile < TILES; tile++) {
        let output = (group * TILES + tile) * TILE_OUTPUTS + lane / PARTS * select(4u, 2u, PAIRED);
        var columns = vec4<u32>(output) + vec4<u32>(0u, 1u, 2u, 3u);
        if PAIRED { columns = vec4<u32>(output, output + 1u, output, output + 1u); }
        var rows = columns + vec4<u32>(shift);
        if PAIRED { rows += vec4<u32>(0u, 0u, params.pair, params.pair); }
        let here = (columns < vec4<u32>(params.outputs)) & (rows < vec4<u32>(params.shard_rows));
        // What is not there is computed with the last row there is, and not stored.
        rows = min(rows, vec4<u32>(params.shard_rows - 1u));
        var sums: Sums;
        for (var piece = 0u; piece < CHUNKS; piece += PIECE) {
            let first = split * CHUNKS + piece;
            let count = min(PIECE, CHUNKS - piece);
            if tile == 0u {
                if piece > 0u { workgroupBarrier(); }
                stage_x(first_row, first, count, lane);
                workgroupBarrier();
            }
            for (var chunk = part; chunk < count; chunk += PARTS) {
                sums = add_chunk(sums, rows, first + chunk, chunk);
            }
        }
        let to = Target(part == 0u, output, here, split);
        finish_row(first_row, sums.a, lane, to);
        finish_row(first_row + 1u, sums.b, lane, to);
        finish_row(first_row + 2u, sums.c, lane, to);
        finish_row(first_row + 3u, sums.d, lane, to);
        if ROWS > 4u {
            finish_row(first_row + 4u, sums.e, lane, to);
            finish_row(first_row + 5u, sums.f, lane, to);
            finish_row(first_row + 6u, sums.g, lane, to);
            finish_row(first_row + 7u, sums.h, lane, to);
        }
    }
}
