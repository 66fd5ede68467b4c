// sort: puts ranks in order, the largest first, by Batcher's bitonic merges.
//
// Constants    LANES, CAPACITY (a power of two)

var<workgroup> candidates: array<vec2<u32>, CAPACITY>;

/// Sorts the first `size` candidates, a power of two that is the same for all lanes.
fn sort(size: u32, lane: u32) {
    for (var run = 2u; run <= size; run *= 2u) {
        for (var reach = run / 2u; reach > 0u; reach /= 2u) {
            workgroupBarrier();
            for (var pair = lane; pair < size / 2u; pair += LANES) {
                let inside = pair & (reach - 1u);
                let first = ((pair - inside) << 1u) | inside;
                let a = candidates[first];
                let b = candidates[first + reach];
                // Runs alternate in direction, so that two of them make a run that can be merged.
                if long_less(a, b) == ((first & run) == 0u) {
                    candidates[first] = b;
                    candidates[first + reach] = a;
                }
            }
        }
    }
    workgroupBarrier();
}
