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

fn part_count() -> u32 { return splits_of(seen_from(step.position + step.rows - 1u, merged.window)); }

// How much of each split's sums goes into the whole.
fn prepare(lane: u32, first_reader: bool) {
    let splits = part_count();
    for (var head = lane; head < HEADS; head += LANES) {
        var most = -3.0e38;
        for (var split = 0u; split < splits; split++) { most = max(most, peaks[split * HEADS + head].x); }
        var total = 0.0;
        for (var split = 0u; split < splits; split++) {
            let peak = peaks[split * HEADS + head];
            total += peak.y * exp(peak.x - most);
        }
        for (var split = 0u; split < splits; split++) {
            shares[split * HEADS + head] = exp(peaks[split * HEADS + head].x - most) / total;
        }
    }
    workgroupBarrier();
}

fn input4(row: u32, slot: u32, four: u32, index: u32) -> vec4<f32> {
    let head = four / HEAD_QUADS;
    let splits = part_count();
    var sum = vec4<f32>();
    for (var split = 0u; split < splits; split++) {
        sum += sums[split * HEADS * HEAD_QUADS + four] * shares[split * HEADS + head];
    }
    return sum;
}
