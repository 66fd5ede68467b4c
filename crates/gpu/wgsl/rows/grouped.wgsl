// grouped: pairs of a row and one of its experts, in tiles of one expert each, as `group_rows` has written them; for a
// weight with a matrix for each expert.
//
// Where a pair's input and output begin is looked up once: every slab would wait for it otherwise.

@group(1) @binding(8) var<storage, read> groups: array<u32>;

// No expert, or no pair.
const NONE: u32 = 0xffffffffu;

// Words of a tile: its expert, then its pairs.
const TILE_WORDS: u32 = 1u + TILE_ROWS;

// Bytes of workgroup memory.
const ROWS_BYTES: u32 = 8u * TILE_ROWS;

// The first floats of each pair in x and in y.
var<workgroup> starts: array<vec2<u32>, TILE_ROWS>;

fn is_empty(tile: u32) -> bool { return groups[tile * TILE_WORDS] == NONE; }

fn tile_matrix(tile: u32) -> u32 { return groups[tile * TILE_WORDS]; }

fn prepare_rows(tile: u32, lane: u32) {
    let used = params.routing_width / 2u;
    for (var i = lane; i < TILE_ROWS; i += LANES) {
        let pair = groups[tile * TILE_WORDS + 1u + i];
        // A place that holds no pair is computed with the first row and not written.
        let row = select(pair / used, 0u, pair == NONE);
        let slot = select(pair % used, 0u, pair == NONE);
        let x_at = params.x_at + row * params.x_stride + slot * params.expert_stride;
        let y_at = params.y_at + row * params.y_stride + slot * params.outputs;
        starts[i] = vec2<u32>(x_at, select(y_at, NONE, pair == NONE));
    }
    workgroupBarrier();
}

fn x_start(first_row: u32, row: u32) -> u32 { return starts[row].x; }

fn is_written(first_row: u32, row: u32) -> bool { return starts[row].y != NONE; }

fn y_start(first_row: u32, row: u32) -> u32 { return starts[row].y; }
