// splits: how many workgroups share the context of a row that is attended alone. The host computes the same.
//
// Constants    SPLIT_KEYS, MOST_SPLITS

fn splits_of(seen: u32) -> u32 { return clamp((seen + SPLIT_KEYS - 1u) / SPLIT_KEYS, 1u, MOST_SPLITS); }

// The splits of a row of the step.
fn splits_from(row: u32, window: u32) -> u32 { return splits_of(end_key(row, window) - first_key(row, window)); }
