// in_order: the rows of a step one after another, for a weight of one matrix.

// Bytes of workgroup memory.
const ROWS_BYTES: u32 = 0u;

fn is_empty(tile: u32) -> bool { return tile * TILE_ROWS >= step.rows; }

fn tile_matrix(tile: u32) -> u32 { return 0u; }

fn prepare_rows(tile: u32, lane: u32) {}

// Rows beyond the last are computed with it and not written.
fn x_start(first_row: u32, row: u32) -> u32 {
    return params.x_at + min(first_row + row, step.rows - 1u) * params.x_stride;
}

fn is_written(first_row: u32, row: u32) -> bool { return first_row + row < step.rows; }

fn y_start(first_row: u32, row: u32) -> u32 { return params.y_at + (first_row + row) * params.y_stride; }
