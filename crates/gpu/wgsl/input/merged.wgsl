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
const_assert MOST_SPLITS >= 2u;

var<workgroup> made: array<vec4<f32>, 8u * CHUNKS>;

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
    for (var four = lane; four < 8u * CHUNKS; four += LANES) {
        let head = four / HEAD_QUADS;
        // Written out, so that the first splits are asked for at once; there is always room for two.
        var sum = sums[four] * shares[head];
        let next = sums[HEADS * HEAD_QUADS + four];
        if splits > 1u { sum += next * shares[HEADS + head]; }
        for (var split = 2u; split < splits; split++) {
            sum += sums[split * HEADS * HEAD_QUADS + four] * shares[split * HEADS + head];
        }
        made[four] = sum;
    }
    workgroupBarrier();
}

fn input_values(row: u32, slot: u32, piece: u32, lane: u32) -> Values {
    let at = 8u * (piece + lane / 2u) + lane % 2u;
    return Values(made[at], made[at + 2u], made[at + 4u], made[at + 6u]);
}
