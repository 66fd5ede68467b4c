// linear_tile: y = epilogue(x · Wᵀ) for many rows of x, so that a weight is decoded once for TILE_ROWS of them. Where there
// are experts, a row is a pair of a row of x and one of its experts, and the rows of a tile have the same expert; what
// epilogues read by row needs rows in order.
//
// Work split   one workgroup computes TILE_ROWS rows (y) of TILE_OUTPUTS outputs (x). It walks along the width in slabs of
//              DEPTH values: all lanes together bring a slab of x and of W to workgroup memory, then each multiplies
//              LANE_ROWS rows with LANE_COLUMNS rows of W (a column here), in registers. Where there are few outputs, PARTS
//              groups of lanes share each slab, and their sums are added at the end.
// Reads        x [rows, width], weight as packed planes, width a multiple of 4        Writes   y [rows, outputs]
// Slots        format: chunk_scales, chunk_quants     epilogue: PAIRED, finish
//              rows: ROWS_BYTES, is_empty, tile_matrix, prepare_rows, x_start, is_written, y_start
// Constants    TILE_ROWS, TILE_OUTPUTS, LANE_ROWS (4, 8), LANE_COLUMNS (4, 8), PARTS, DEPTH (16, 32, 64),
//              UNROLL (1, 2, 4), AHEAD (0, 1), RAGGED (1 where the width is a multiple neither of 32 nor of DEPTH)
//
// A quad is four values along the width. Tiles hold quads, so nothing is transposed, and all memory is read and written 16
// bytes at a time. Arrays of registers have constant indices only, and the dimensions of the tiles are such that the
// changing part of an index is the lane's own, which leaves one bounds check for all reads of a lane.

@group(1) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(1) @binding(3) var<storage, read_write> y: array<f32>;

const COLUMNS: u32 = TILE_OUTPUTS * (1u + u32(PAIRED));
const GRID_ROWS: u32 = TILE_ROWS / LANE_ROWS;
const GRID_COLUMNS: u32 = COLUMNS / LANE_COLUMNS;
const PART_LANES: u32 = GRID_ROWS * GRID_COLUMNS;
const LANES: u32 = PART_LANES * PARTS;
// Lanes side by side read quads side by side; eight quads are as much as workgroup memory gives at a time on most GPUs.
const BAND: u32 = min(8u, GRID_COLUMNS);
const QUADS: u32 = DEPTH / 4u;
const PART_QUADS: u32 = QUADS / PARTS;
// What lanes fetch of a slab: quads of x, and halves of chunks of W, which have one scale each.
const X_QUADS: u32 = TILE_ROWS * QUADS;
const W_HALVES: u32 = COLUMNS * DEPTH / 16u;

const_assert LANES <= 256u && LANES % 32u == 0u;
const_assert LANE_ROWS == 4u || LANE_ROWS == 8u;
const_assert LANE_COLUMNS == 8u || (LANE_COLUMNS == 4u && !PAIRED);
const_assert TILE_ROWS % 8u == 0u && DEPTH % 16u == 0u;
const_assert PART_QUADS % UNROLL == 0u;
const_assert X_QUADS <= 8u * LANES && W_HALVES <= 2u * LANES;
const_assert 16u * (X_QUADS + 4u * W_HALVES) + ROWS_BYTES <= 16384u;
// The sums of parts are added in the memory of the tiles.
const_assert PARTS == 1u || (LANES <= X_QUADS && LANES <= 4u * W_HALVES);

// By quad, then by the lane's row or column; part and place in the grid are the lane's.
var<workgroup> x_tile: array<array<array<array<vec4<f32>, GRID_ROWS>, LANE_ROWS>, PARTS>, PART_QUADS>;
var<workgroup> w_tile: array<array<array<array<vec4<f32>, GRID_COLUMNS>, LANE_COLUMNS>, PARTS>, PART_QUADS>;

// Where a lane stands.
struct Place {
    lane: u32,
    first_row: u32,       // of the tile
    first_output: u32,    // of the tile
    matrix: u32,          // of the weight, for all of the tile
    part: u32,
    row: u32,             // in the grid of a part's lanes
    column: u32,
}

// What a lane brings of a slab.
struct Fetched {
    x: array<vec4<f32>, 8>,
    w: array<vec4<f32>, 8>,
}

// ---- The slab's quads of x: eight rows by four quads for 32 lanes, which are whole sectors of memory and different banks.

fn x_row(index: u32) -> u32 { return index / (8u * QUADS) * 8u + index % 8u; }
fn x_quad(index: u32) -> u32 { return (index / 32u) % (QUADS / 4u) * 4u + (index / 8u) % 4u; }

fn fetch_x(place: Place, slab: u32, index: u32) -> vec4<f32> {
    let quad = slab * QUADS + x_quad(index);
    let at = x_start(place.first_row, x_row(index)) / 4u;
    // What lies beyond the row may be anything, NaN too.
    if (DEPTH > 32u || RAGGED == 1u) && quad >= params.width / 4u { return vec4<f32>(); }
    return x[at + quad];
}

fn put_x(index: u32, quad: vec4<f32>) {
    let row = x_row(index);
    let at = x_quad(index);
    x_tile[at / PARTS][at % PARTS][row / GRID_ROWS][row % GRID_ROWS] = quad;
}

// ---- The slab's halves of chunks of W.

// The row of the buffer with the weights of an output. Those before the shard wrap around to large numbers, so one
// comparison covers both ends.
fn weight_row(matrix: u32, output: u32) -> u32 {
    return matrix * params.matrix_rows + params.first_row + output - params.shard_first;
}

fn half_chunk(row: u32, chunk: u32, side: u32) -> array<vec4<f32>, 4> {
    let scales = chunk_scales(row, chunk);
    // A branch for each side, so that none decodes what it does not use.
    if side == 0u {
        let quants = chunk_quants(row, chunk);
        let offset = vec4<f32>(scales.y);
        return array<vec4<f32>, 4>(
            scales.x * quants[0] + offset, scales.x * quants[1] + offset,
            scales.x * quants[2] + offset, scales.x * quants[3] + offset);
    }
    let quants = chunk_quants(row, chunk);
    let offset = vec4<f32>(scales.w);
    return array<vec4<f32>, 4>(
        scales.z * quants[4] + offset, scales.z * quants[5] + offset,
        scales.z * quants[6] + offset, scales.z * quants[7] + offset);
}

fn fetch_w(place: Place, slab: u32, index: u32) -> array<vec4<f32>, 4> {
    let column = index % COLUMNS;
    let output = place.first_output + column % TILE_OUTPUTS + column / TILE_OUTPUTS * params.pair;
    // What lies outside the shard is computed with its last row and not written.
    let row = min(weight_row(place.matrix, output), params.shard_rows - 1u);
    let half = slab * (DEPTH / 16u) + index / COLUMNS;
    return half_chunk(row, min(half / 2u, (params.width - 1u) / 32u), half % 2u);
}

fn put_w(index: u32, quad: u32, values: vec4<f32>) {
    let column = index % COLUMNS;
    let at = 4u * (index / COLUMNS) + quad;
    w_tile[at / PARTS][at % PARTS][column / GRID_COLUMNS][column % GRID_COLUMNS] = values;
}

// ---- A slab, from memory to registers and from registers to the tiles.

fn fetch(place: Place, slab: u32) -> Fetched {
    let lane = place.lane;
    var fetched: Fetched;
    if lane < X_QUADS { fetched.x[0] = fetch_x(place, slab, lane); }
    if X_QUADS > 1u * LANES && lane + 1u * LANES < X_QUADS { fetched.x[1] = fetch_x(place, slab, lane + 1u * LANES); }
    if X_QUADS > 2u * LANES && lane + 2u * LANES < X_QUADS { fetched.x[2] = fetch_x(place, slab, lane + 2u * LANES); }
    if X_QUADS > 3u * LANES && lane + 3u * LANES < X_QUADS { fetched.x[3] = fetch_x(place, slab, lane + 3u * LANES); }
    if X_QUADS > 4u * LANES && lane + 4u * LANES < X_QUADS { fetched.x[4] = fetch_x(place, slab, lane + 4u * LANES); }
    if X_QUADS > 5u * LANES && lane + 5u * LANES < X_QUADS { fetched.x[5] = fetch_x(place, slab, lane + 5u * LANES); }
    if X_QUADS > 6u * LANES && lane + 6u * LANES < X_QUADS { fetched.x[6] = fetch_x(place, slab, lane + 6u * LANES); }
    if X_QUADS > 7u * LANES && lane + 7u * LANES < X_QUADS { fetched.x[7] = fetch_x(place, slab, lane + 7u * LANES); }
    if lane < W_HALVES {
        let half = fetch_w(place, slab, lane);
        fetched.w[0] = half[0];
        fetched.w[1] = half[1];
        fetched.w[2] = half[2];
        fetched.w[3] = half[3];
    }
    if W_HALVES > LANES && lane + LANES < W_HALVES {
        let half = fetch_w(place, slab, lane + LANES);
        fetched.w[4] = half[0];
        fetched.w[5] = half[1];
        fetched.w[6] = half[2];
        fetched.w[7] = half[3];
    }
    return fetched;
}

fn put(lane: u32, fetched: Fetched) {
    if lane < X_QUADS { put_x(lane, fetched.x[0]); }
    if X_QUADS > 1u * LANES && lane + 1u * LANES < X_QUADS { put_x(lane + 1u * LANES, fetched.x[1]); }
    if X_QUADS > 2u * LANES && lane + 2u * LANES < X_QUADS { put_x(lane + 2u * LANES, fetched.x[2]); }
    if X_QUADS > 3u * LANES && lane + 3u * LANES < X_QUADS { put_x(lane + 3u * LANES, fetched.x[3]); }
    if X_QUADS > 4u * LANES && lane + 4u * LANES < X_QUADS { put_x(lane + 4u * LANES, fetched.x[4]); }
    if X_QUADS > 5u * LANES && lane + 5u * LANES < X_QUADS { put_x(lane + 5u * LANES, fetched.x[5]); }
    if X_QUADS > 6u * LANES && lane + 6u * LANES < X_QUADS { put_x(lane + 6u * LANES, fetched.x[6]); }
    if X_QUADS > 7u * LANES && lane + 7u * LANES < X_QUADS { put_x(lane + 7u * LANES, fetched.x[7]); }
    if lane < W_HALVES {
        put_w(lane, 0u, fetched.w[0]);
        put_w(lane, 1u, fetched.w[1]);
        put_w(lane, 2u, fetched.w[2]);
        put_w(lane, 3u, fetched.w[3]);
    }
    if W_HALVES > LANES && lane + LANES < W_HALVES {
        put_w(lane + LANES, 0u, fetched.w[4]);
        put_w(lane + LANES, 1u, fetched.w[5]);
        put_w(lane + LANES, 2u, fetched.w[6]);
        put_w(lane + LANES, 3u, fetched.w[7]);
    }
}

// ---- From the tiles to sums: those of row i are 2i, for the first four columns, and 2i + 1.

// Constant indices must lie within the tiles even where they are not used.
const W4: u32 = 4u % LANE_COLUMNS;
const X4: u32 = 4u % LANE_ROWS;

// Adds four products to each of four sums, one column each. The order leaves nothing but multiply-adds.
fn plus(sum: vec4<f32>, x: vec4<f32>, w: mat4x4<f32>) -> vec4<f32> {
    return sum + x.x * w[0] + x.y * w[1] + x.z * w[2] + x.w * w[3];
}

fn multiply(place: Place, quad: u32, sums: ptr<function, array<vec4<f32>, 16>>) {
    let part = place.part;
    let row = place.row;
    let column = place.column;
    let a = transpose(mat4x4<f32>(
        w_tile[quad][part][0][column], w_tile[quad][part][1][column],
        w_tile[quad][part][2][column], w_tile[quad][part][3][column]));
    var b: mat4x4<f32>;
    if LANE_COLUMNS > 4u {
        b = transpose(mat4x4<f32>(
            w_tile[quad][part][W4][column], w_tile[quad][part][W4 + 1u][column],
            w_tile[quad][part][W4 + 2u][column], w_tile[quad][part][W4 + 3u][column]));
    }
    let x0 = x_tile[quad][part][0][row];
    (*sums)[0] = plus((*sums)[0], x0, a);
    if LANE_COLUMNS > 4u { (*sums)[1] = plus((*sums)[1], x0, b); }
    let x1 = x_tile[quad][part][1][row];
    (*sums)[2] = plus((*sums)[2], x1, a);
    if LANE_COLUMNS > 4u { (*sums)[3] = plus((*sums)[3], x1, b); }
    let x2 = x_tile[quad][part][2][row];
    (*sums)[4] = plus((*sums)[4], x2, a);
    if LANE_COLUMNS > 4u { (*sums)[5] = plus((*sums)[5], x2, b); }
    let x3 = x_tile[quad][part][3][row];
    (*sums)[6] = plus((*sums)[6], x3, a);
    if LANE_COLUMNS > 4u { (*sums)[7] = plus((*sums)[7], x3, b); }
    if LANE_ROWS > 4u {
        let x4 = x_tile[quad][part][X4][row];
        (*sums)[8] = plus((*sums)[8], x4, a);
        if LANE_COLUMNS > 4u { (*sums)[9] = plus((*sums)[9], x4, b); }
        let x5 = x_tile[quad][part][X4 + 1u][row];
        (*sums)[10] = plus((*sums)[10], x5, a);
        if LANE_COLUMNS > 4u { (*sums)[11] = plus((*sums)[11], x5, b); }
        let x6 = x_tile[quad][part][X4 + 2u][row];
        (*sums)[12] = plus((*sums)[12], x6, a);
        if LANE_COLUMNS > 4u { (*sums)[13] = plus((*sums)[13], x6, b); }
        let x7 = x_tile[quad][part][X4 + 3u][row];
        (*sums)[14] = plus((*sums)[14], x7, a);
        if LANE_COLUMNS > 4u { (*sums)[15] = plus((*sums)[15], x7, b); }
    }
}

// ---- From sums to y.

fn write(place: Place, row: u32, column: u32, value: f32, second: f32) {
    let output = place.first_output + column;
    var here = output < params.outputs && weight_row(place.matrix, output) < params.shard_rows;
    if PAIRED { here = here && weight_row(place.matrix, output + params.pair) < params.shard_rows; }
    if here {
        let finished = finish(place.first_row + row, output, params.factor * value, params.factor * second);
        y[y_start(place.first_row, row) + output] = finished;
    }
}

// Writes the outputs of a lane in its row i, whose sums are a and b.
fn write_row(place: Place, i: u32, a: vec4<f32>, b: vec4<f32>) {
    let row = i * GRID_ROWS + place.row;
    if !is_written(place.first_row, row) { return; }
    let column = place.column;
    write(place, row, column, a.x, b.x);
    write(place, row, column + GRID_COLUMNS, a.y, b.y);
    write(place, row, column + 2u * GRID_COLUMNS, a.z, b.z);
    write(place, row, column + 3u * GRID_COLUMNS, a.w, b.w);
    if LANE_COLUMNS > 4u && !PAIRED {
        write(place, row, column + 4u * GRID_COLUMNS, b.x, 0.0);
        write(place, row, column + 5u * GRID_COLUMNS, b.y, 0.0);
        write(place, row, column + 6u * GRID_COLUMNS, b.z, 0.0);
        write(place, row, column + 7u * GRID_COLUMNS, b.w, 0.0);
    }
}

// Adds what the parts have of row i, each row in the lanes of another part, and writes it.
fn add_parts(place: Place, i: u32, a: vec4<f32>, b: vec4<f32>) {
    if PARTS == 1u {
        write_row(place, i, a, b);
        return;
    }
    // Any place of its own will do for a lane's sums.
    let lane = place.lane;
    let in_x = vec4<u32>(
        lane / (GRID_ROWS * LANE_ROWS * PARTS), lane / (GRID_ROWS * LANE_ROWS) % PARTS,
        lane / GRID_ROWS % LANE_ROWS, lane % GRID_ROWS);
    let in_w = vec4<u32>(
        lane / (GRID_COLUMNS * LANE_COLUMNS * PARTS), lane / (GRID_COLUMNS * LANE_COLUMNS) % PARTS,
        lane / GRID_COLUMNS % LANE_COLUMNS, lane % GRID_COLUMNS);
    workgroupBarrier();
    x_tile[in_x.x][in_x.y][in_x.z][in_x.w] = a;
    if LANE_COLUMNS > 4u { w_tile[in_w.x][in_w.y][in_w.z][in_w.w] = b; }
    workgroupBarrier();
    if place.part != i % PARTS { return; }
    var sum_a = vec4<f32>();
    var sum_b = vec4<f32>();
    for (var other = lane % PART_LANES; other < LANES; other += PART_LANES) {
        sum_a += x_tile[other / (GRID_ROWS * LANE_ROWS * PARTS)][other / (GRID_ROWS * LANE_ROWS) % PARTS]
            [other / GRID_ROWS % LANE_ROWS][other % GRID_ROWS];
        if LANE_COLUMNS > 4u {
            sum_b += w_tile[other / (GRID_COLUMNS * LANE_COLUMNS * PARTS)]
                [other / (GRID_COLUMNS * LANE_COLUMNS) % PARTS]
                [other / GRID_COLUMNS % LANE_COLUMNS][other % GRID_COLUMNS];
        }
    }
    write_row(place, i, sum_a, sum_b);
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup.y;
    let first_output = workgroup.x * TILE_OUTPUTS;
    if is_empty(tile) { return; }
    // Nothing to do where no output lies in the shard: the first does not, and the shard starts after the last.
    let matrix = tile_matrix(tile);
    let first = weight_row(matrix, first_output);
    if first >= params.shard_rows && 0u - first >= TILE_OUTPUTS { return; }
    prepare_rows(tile, lane);

    let within = lane % PART_LANES;
    let place = Place(
        lane,
        tile * TILE_ROWS,
        first_output,
        matrix,
        lane / PART_LANES,
        within / BAND % GRID_ROWS,
        within % BAND + within / (BAND * GRID_ROWS) * BAND,
    );

    var sums: array<vec4<f32>, 16>;
    let slabs = (params.width + DEPTH - 1u) / DEPTH;
    var fetched: Fetched;
    if AHEAD == 1u { fetched = fetch(place, 0u); }
    for (var slab = 0u; slab < slabs; slab++) {
        if AHEAD == 0u { fetched = fetch(place, slab); }
        workgroupBarrier();
        put(lane, fetched);
        workgroupBarrier();
        // The next slab is on its way while this one is multiplied; after the last it is the last again.
        if AHEAD == 1u { fetched = fetch(place, min(slab + 1u, slabs - 1u)); }
        for (var quad = 0u; quad < PART_QUADS; quad += UNROLL) {
            multiply(place, quad, &sums);
            if UNROLL > 1u { multiply(place, quad + 1u, &sums); }
            if UNROLL > 2u {
                multiply(place, quad + 2u, &sums);
                multiply(place, quad + 3u, &sums);
            }
        }
    }

    add_parts(place, 0u, sums[0], sums[1]);
    add_parts(place, 1u, sums[2], sums[3]);
    add_parts(place, 2u, sums[4], sums[5]);
    add_parts(place, 3u, sums[6], sums[7]);
    if LANE_ROWS > 4u {
        add_parts(place, 4u, sums[8], sums[9]);
        add_parts(place, 5u, sums[10], sums[11]);
        add_parts(place, 6u, sums[12], sums[13]);
        add_parts(place, 7u, sums[14], sums[15]);
    }
}
