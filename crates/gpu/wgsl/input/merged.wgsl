// merged: x is what attention found, of which each split of the context has a part: the parts are brought together here.
//
// Slots        splits: splits_of, seen_from
// Constants    HEADS, HEAD_WIDTH, SPLIT_KEYS, MOST_SPLITS

struct Merged { window: u32 }

@group(1) @binding(3) var<storage, read> sums: array<vec4<f32>>;
@group(1) @binding(4) var<storage, read> peaks: array<vec2<f32>>;
@group(1) @binding(6) var<uniform> merged: Merged;

const HEAD_QUADS: u32 = HEAD_WIDTH / 4u;

var<workgroup> shares: array<f32, MOST_SPLITS * HEADS>;

const_assert MOST_SPLITS * HEADS <= LANES;
const_assert HEAD_WIDTH % 32u == 0u;

fn part_count() -> u32 { return splits_of(seen_from(step.position + step.rows - 1u, merged.window)); }

// How much of each split's sums goes into the whole. A lane has one split of one head.
fn prepare(lane: u32, first_reader: bool) {
    let splits = part_count();
    if lane < MOST_SPLITS * HEADS {
        let head = lane % HEADS;
        var own = vec2<f32>();
        var most = -3.0e38;
        for (var split = 0u; split < splits; split++) {
            let peak = peaks[split * HEADS + head];
            most = max(most, peak.x);
            if split == lane / HEADS { own = peak; }
        }
        var total = 0.0;
        for (var split = 0u; split < splits; split++) {
            let peak = peaks[split * HEADS + head];
            total += peak.y * exp(peak.x - most);
        }
        shares[lane] = exp(own.x - most) / total;
    }
    workgroupBarrier();
}

fn input_values(row: u32, slot: u32, piece: u32, lane: u32) -> Values {
    let first = 8u * (piece + lane / 2u) + lane % 2u;
    // Sixteen values of one half of a chunk are of one head.
    let head = first / HEAD_QUADS;
    let splits = part_count();
    var values: Values;
    for (var split = 0u; split < splits; split++) {
        let at = split * HEADS * HEAD_QUADS + first;
        let share = shares[split * HEADS + head];
        values.a += sums[at] * share;
        values.b += sums[at + 2u] * share;
        values.c += sums[at + 4u] * share;
        values.d += sums[at + 6u] * share;
    }
    return values;
}
