// merged: x is what attention found, of which each split of the context has a part: the parts are brought together here.
//
// Slots        splits: splits_from
// Constants    HEADS, HEAD_WIDTH, SPLIT_KEYS, MOST_SPLITS

struct Merged { window: u32 }

@group(1) @binding(3) var<storage, read> sums: array<vec4<f32>>;
@group(1) @binding(4) var<storage, read> peaks: array<vec2<f32>>;
@group(1) @binding(6) var<uniform> merged: Merged;

const HEAD_QUADS: u32 = HEAD_WIDTH / 4u;

var<workgroup> shares: array<f32, MOST_SPLITS * HEADS>;

const_assert MOST_SPLITS * HEADS <= LANES;
const_assert MOST_SPLITS >= 2u;
const_assert PIECE == CHUNKS || APART == 1u;

// Whether all of x is staged before the first piece is asked for.
const STAGED_AHEAD: bool = true;

fn part_count() -> u32 { return splits_from(step.rows - 1u, merged.window); }

// How much of each split's sums goes into the whole. A lane has one split of one head.
fn prepare(lane: u32, first_piece: u32, first_reader: bool) {
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
    for (var first = 0u; first < 8u * PIECE; first += LANES) {
        let four = first + lane;
        var sum = vec4<f32>();
        if four < 8u * PIECE {
            let at = 8u * first_piece + four;
            let head = at / HEAD_QUADS;
            // Written out, so that the first splits are asked for at once; there is always room for two.
            let next = sums[HEADS * HEAD_QUADS + at];
            sum = sums[at] * shares[head];
            if splits > 1u { sum += next * shares[HEADS + head]; }
            for (var split = 2u; split < splits; split++) {
                sum += sums[split * HEADS * HEAD_QUADS + at] * shares[split * HEADS + head];
            }
        }
        stage(0u, four, four < 8u * PIECE, sum);
    }
    workgroupBarrier();
}

fn input4(row: u32, slot: u32, four: u32) -> vec4<f32> { return vec4<f32>(); }
