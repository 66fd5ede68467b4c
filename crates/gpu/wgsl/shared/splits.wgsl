// splits: how many workgroups share the context of a row that is attended alone. The host computes the same.
//
// Constants    SPLIT_KEYS, MOST_SPLITS

// Keys that a row at `position` sees. A window of zero is none.
fn seen_from(position: u32, window: u32) -> u32 {
    let all = position + 1u;
    return select(all, min(all, window), window > 0u);
}

fn splits_of(seen: u32) -> u32 { return clamp((seen + SPLIT_KEYS - 1u) / SPLIT_KEYS, 1u, MOST_SPLITS); }
