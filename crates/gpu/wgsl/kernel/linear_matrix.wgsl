// linear_matrix: y = epilogue(x · Wᵀ) for many rows of x, on the matrix units of a GPU that has them.
//
// Work split   one workgroup computes 32 · GRID_ROWS rows (y) of TILE_OUTPUTS outputs (x), in a grid of subgroups that
//              have 32 rows and 16 · PIECES columns each. It walks along the width in slabs of DEPTH values: all lanes
//              together bring a slab of x and of W to workgroup memory in half precision, then each subgroup multiplies
//              what it has of it, sixteen by sixteen. Where there are few outputs, PARTS grids share each slab, and their
//              sums are added at the end. Sums are single precision.
// Reads        x [rows, width], weight as packed planes, width a multiple of 4        Writes   y [rows, outputs]
// Slots        format: chunk_scales, chunk_quants     epilogue: PAIRED, finish
// Constants    SUBGROUP, GRID_ROWS, GRID_COLUMNS, PIECES (2, 4), PARTS, DEPTH (32, 64, 128),
//              RAGGED (1 where the width is no multiple of DEPTH)
//
// Needs `shader-f16`, subgroups of one size, and cooperative matrices of 16 × 16 × 16, which only naga's dialect has.

@group(1) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(1) @binding(3) var<storage, read_write> y: array<f32>;

const TILE_ROWS: u32 = 32u * GRID_ROWS;
const COLUMNS: u32 = 16u * PIECES * GRID_COLUMNS;
const TILE_OUTPUTS: u32 = COLUMNS / (1u + u32(PAIRED));
const GRID: u32 = GRID_ROWS * GRID_COLUMNS;
const LANES: u32 = SUBGROUP * GRID * PARTS;
const QUADS: u32 = DEPTH / 4u;
const CHUNKS: u32 = DEPTH / 32u;
// Quads from a row of a tile to the next: two more than it has, so that rows lie in different banks.
const STRIDE: u32 = QUADS + 2u;
// The largest number in half precision: what is larger would become infinite.
const LARGEST: f32 = 65504.0;

const_assert LANES <= 256u && DEPTH % (16u * PARTS) == 0u && DEPTH % 32u == 0u;

var<workgroup> x_tile: array<vec4<f16>, TILE_ROWS * STRIDE>;
var<workgroup> w_tile: array<vec4<f16>, COLUMNS * STRIDE>;
// For each subgroup, two pieces on their way to y.
var<workgroup> sums: array<f32, 512u * GRID * PARTS>;

// Where a lane stands.
struct Place {
    lane: u32,
    first_row: u32,       // of the tile
    first_output: u32,    // of the tile
}

fn halves(values: vec4<f32>) -> vec4<f16> {
    let bounded = clamp(values, vec4<f32>(-LARGEST), vec4<f32>(LARGEST));
    // Infinity and NaN stay, so that they are found out.
    return vec4<f16>(select(bounded, values, magnitude(values) >= vec4<u32>(0x7f800000u)));
}

// Brings a slab of x, quads side by side by lanes side by side.
fn bring_x(place: Place, slab: u32) {
    for (var index = place.lane; index < TILE_ROWS * QUADS; index += LANES) {
        // Rows beyond the last are computed with it and not written.
        let row = min(place.first_row + index / QUADS, step.rows - 1u);
        let quad = slab * QUADS + index % QUADS;
        let row_at = (params.x_at + row * params.x_stride) / 4u;
        var values: vec4<f32>;
        if RAGGED == 0u {
            values = x[row_at + quad];
        } else {
            // The last quad is read again instead of what lies beyond the row, which may be anything.
            let last = params.width / 4u - 1u;
            values = select(vec4<f32>(), x[row_at + min(quad, last)], vec4<bool>(quad <= last));
        }
        x_tile[index / QUADS * STRIDE + index % QUADS] = halves(values);
    }
}

// The row of the buffer with the weights of an output. Those before the shard wrap around to large numbers, so one
// comparison covers both ends.
fn weight_row(output: u32) -> u32 { return params.first_row + output - params.shard_first; }

// Brings a slab of W, a chunk of 32 values by each lane.
fn bring_w(place: Place, slab: u32) {
    for (var index = place.lane; index < COLUMNS * CHUNKS; index += LANES) {
        let column = index / CHUNKS;
        let output = place.first_output + column % TILE_OUTPUTS + column / TILE_OUTPUTS * params.pair;
        // What lies outside the shard is computed with its last row and not written.
        let row = min(weight_row(output), params.shard_rows - 1u);
        var chunk = slab * CHUNKS + index % CHUNKS;
        // Beyond the row, its last chunk meets zeros of x.
        if RAGGED == 1u { chunk = min(chunk, (params.width - 1u) / 32u); }
        let scales = chunk_scales(row, chunk);
        let quants = chunk_quants(row, chunk);
        let at = column * STRIDE + index % CHUNKS * 8u;
        let first = vec4<f32>(scales.y);
        let second = vec4<f32>(scales.w);
        w_tile[at] = halves(scales.x * quants[0] + first);
        w_tile[at + 1u] = halves(scales.x * quants[1] + first);
        w_tile[at + 2u] = halves(scales.x * quants[2] + first);
        w_tile[at + 3u] = halves(scales.x * quants[3] + first);
        w_tile[at + 4u] = halves(scales.z * quants[4] + second);
        w_tile[at + 5u] = halves(scales.z * quants[5] + second);
        w_tile[at + 6u] = halves(scales.z * quants[6] + second);
        w_tile[at + 7u] = halves(scales.z * quants[7] + second);
    }
}

// The tile's column where a piece of a subgroup begins. Gates and their ups belong to one subgroup, the gates first.
fn piece_column(grid_column: u32, piece: u32) -> u32 {
    if PAIRED {
        let half = PIECES / 2u;
        return 16u * (grid_column * half + piece % half) + piece / half * TILE_OUTPUTS;
    }
    return 16u * (grid_column * PIECES + piece);
}

// A sum of all parts.
fn whole(at: u32) -> f32 {
    var sum = 0.0;
    for (var part = 0u; part < PARTS; part++) { sum += sums[part * GRID * 512u + at]; }
    return params.factor * sum;
}

// Writes what two pieces of a subgroup have become: one after another, or one as the other's up.
fn write_pieces(place: Place, row: u32, column: u32, second_column: u32) {
    let at = place.lane / SUBGROUP % GRID * 512u;
    let first = place.lane / (SUBGROUP * GRID) * SUBGROUP + place.lane % SUBGROUP;
    for (var index = first; index < 256u; index += SUBGROUP * PARTS) {
        let y_row = row + index / 16u;
        if y_row >= step.rows { continue; }
        let a = whole(at + index);
        let b = whole(at + 256u + index);
        let y_at = params.y_at + y_row * params.y_stride;
        let output = place.first_output + column + index % 16u;
        var here = output < params.outputs && weight_row(output) < params.shard_rows;
        if PAIRED { here = here && weight_row(output + params.pair) < params.shard_rows; }
        if here { y[y_at + output] = finish(y_row, output, a, b); }
        let second = place.first_output + second_column + index % 16u;
        if !PAIRED && second < params.outputs && weight_row(second) < params.shard_rows {
            y[y_at + second] = finish(y_row, second, b, 0.0);
        }
    }
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let place = Place(lane, workgroup.y * TILE_ROWS, workgroup.x * TILE_OUTPUTS);
    if workgroup.y * TILE_ROWS >= step.rows { return; }
    let team = lane / SUBGROUP;
    let part = team / GRID;
    let grid_row = team % GRID / GRID_COLUMNS;
    let grid_column = team % GRID_COLUMNS;
    let a_at = grid_row * 32u * STRIDE;
    let b0_at = piece_column(grid_column, 0u) * STRIDE;
    let b1_at = piece_column(grid_column, 1u) * STRIDE;
    let b2_at = piece_column(grid_column, 2u % PIECES) * STRIDE;
    let b3_at = piece_column(grid_column, 3u % PIECES) * STRIDE;

    var c00: coop_mat16x16<f32, C>;
    var c01: coop_mat16x16<f32, C>;
    var c02: coop_mat16x16<f32, C>;
    var c03: coop_mat16x16<f32, C>;
    var c10: coop_mat16x16<f32, C>;
    var c11: coop_mat16x16<f32, C>;
    var c12: coop_mat16x16<f32, C>;
    var c13: coop_mat16x16<f32, C>;

    for (var slab = 0u; slab < (params.width + RAGGED * (DEPTH - 1u)) / DEPTH; slab++) {
        workgroupBarrier();
        bring_w(place, slab);
        bring_x(place, slab);
        workgroupBarrier();
        for (var own = 0u; own < QUADS; own += 4u * PARTS) {
            let quad = own + 4u * part;
            let a0 = coopLoadT<coop_mat16x16<f16, A>>(&x_tile[a_at + quad], STRIDE);
            let a1 = coopLoadT<coop_mat16x16<f16, A>>(&x_tile[a_at + 16u * STRIDE + quad], STRIDE);
            let b0 = coopLoad<coop_mat16x16<f16, B>>(&w_tile[b0_at + quad], STRIDE);
            let b1 = coopLoad<coop_mat16x16<f16, B>>(&w_tile[b1_at + quad], STRIDE);
            c00 = coopMultiplyAdd(a0, b0, c00);
            c10 = coopMultiplyAdd(a1, b0, c10);
            c01 = coopMultiplyAdd(a0, b1, c01);
            c11 = coopMultiplyAdd(a1, b1, c11);
            if PIECES > 2u {
                let b2 = coopLoad<coop_mat16x16<f16, B>>(&w_tile[b2_at + quad], STRIDE);
                let b3 = coopLoad<coop_mat16x16<f16, B>>(&w_tile[b3_at + quad], STRIDE);
                c02 = coopMultiplyAdd(a0, b2, c02);
                c12 = coopMultiplyAdd(a1, b2, c12);
                c03 = coopMultiplyAdd(a0, b3, c03);
                c13 = coopMultiplyAdd(a1, b3, c13);
            }
        }
    }

    // Two pieces at a time: of a pair, a gate with its up.
    let row = place.first_row + 32u * grid_row;
    let at = team * 512u;
    let columns = vec4<u32>(b0_at, b1_at, b2_at, b3_at) / STRIDE;
    coopStoreT(c00, &sums[at], 16u);
    if PAIRED && PIECES > 2u { coopStoreT(c02, &sums[at + 256u], 16u); } else { coopStoreT(c01, &sums[at + 256u], 16u); }
    workgroupBarrier();
    write_pieces(place, row, columns.x, columns.y);
    workgroupBarrier();
    coopStoreT(c10, &sums[at], 16u);
    if PAIRED && PIECES > 2u { coopStoreT(c12, &sums[at + 256u], 16u); } else { coopStoreT(c11, &sums[at + 256u], 16u); }
    workgroupBarrier();
    write_pieces(place, row + 16u, columns.x, columns.y);
    if PIECES > 2u {
        workgroupBarrier();
        if PAIRED { coopStoreT(c01, &sums[at], 16u); } else { coopStoreT(c02, &sums[at], 16u); }
        coopStoreT(c03, &sums[at + 256u], 16u);
        workgroupBarrier();
        write_pieces(place, row, select(columns.z, columns.y, PAIRED), columns.w);
        workgroupBarrier();
        if PAIRED { coopStoreT(c11, &sums[at], 16u); } else { coopStoreT(c12, &sums[at], 16u); }
        coopStoreT(c13, &sums[at + 256u], 16u);
        workgroupBarrier();
        write_pieces(place, row + 16u, select(columns.z, columns.y, PAIRED), columns.w);
    }
}
