// rows: rows see each other: those before them, as far back as a window reaches, and with AHEAD those after them too.

fn first_seen(row: u32) -> u32 {
    return select(0u, row + 1u - params.window, params.window > 0u && row + 1u > params.window);
}

fn end_seen(row: u32) -> u32 { return select(row + 1u, step.rows, AHEAD == 1u); }

fn first_cache_row(row: u32) -> u32 { return 0u; }
