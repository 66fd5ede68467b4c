// cache: rows see what the row table says, among the rows that their conversation has in a cache.

fn first_seen(row: u32) -> u32 { return first_key(row, params.window); }

fn end_seen(row: u32) -> u32 { return end_key(row, params.window); }

fn first_cache_row(row: u32) -> u32 { return slot_base(row, params.capacity); }
