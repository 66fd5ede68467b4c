// merge: brings the sums of all splits of attend_row together.
//
// Work split   one workgroup merges LANES / SLICES quads of columns (x); SLICES lanes take turns at the splits of a quad.
// Reads        sums [splits, heads · HEAD_WIDTH], peaks [splits, heads] as (largest score, total)
// Writes       y [heads · HEAD_WIDTH]
// Slots        splits
// Constants    LANES, SLICES, HEAD_WIDTH, SPLIT_KEYS, MOST_SPLITS

struct Params { heads: u32, window: u32 }

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> sums: array<vec4<f32>>;
@group(1) @binding(2) var<storage, read> peaks: array<vec2<f32>>;
@group(1) @binding(3) var<storage, read_write> y: array<vec4<f32>>;

const QUADS: u32 = HEAD_WIDTH / 4u;

var<workgroup> shares: array<vec4<f32>, LANES>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let here = LANES / SLICES;
    let quad = workgroup.x * here + lane % here;
    let splits = splits_of(seen_from(step.position + step.rows - 1u, params.window));
    let inside = quad < params.heads * QUADS;
    let head = quad / QUADS;
    var most = -3.0e38;
    var total = 0.0;
    var sum = vec4<f32>();
    if inside {
        for (var split = 0u; split < splits; split++) { most = max(most, peaks[split * params.heads + head].x); }
        for (var split = 0u; split < splits; split++) {
            let peak = peaks[split * params.heads + head];
            total += peak.y * exp(peak.x - most);
        }
        for (var split = lane / here; split < splits; split += SLICES) {
            sum += sums[split * params.heads * QUADS + quad] * exp(peaks[split * params.heads + head].x - most);
        }
    }
    shares[lane] = sum;
    workgroupBarrier();
    if lane < here && inside {
        for (var slice = 1u; slice < SLICES; slice++) { sum += shares[lane + slice * here]; }
        y[quad] = sum / total;
    }
}
