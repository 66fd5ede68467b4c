// merge: brings the sums of all splits of attend_row together.
//
// Work split   one workgroup merges LANES / SLICES quads of columns (x) of one head (y) of one row (z). A lane weighs one split; then
//              SLICES lanes have up to eight splits each of a quad, which they ask for before they know the weights.
// Reads        sums [rows, MOST_SPLITS, heads · HEAD_WIDTH], peaks [rows, MOST_SPLITS, heads] as (largest score, total)
// Writes       y [rows, heads · HEAD_WIDTH]
// Slots        splits     reduce: workgroup_sum, workgroup_max
// Constants    LANES, SLICES, HEAD_WIDTH, SPLIT_KEYS, MOST_SPLITS

struct Params {
    heads: u32,
    window: u32,
    last: u32,    // one: of the step's last row alone
}

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> sums: array<vec4<f32>>;
@group(1) @binding(2) var<storage, read> peaks: array<vec2<f32>>;
@group(1) @binding(3) var<storage, read_write> y: array<vec4<f32>>;

const QUADS: u32 = HEAD_WIDTH / 4u;
const HERE: u32 = LANES / SLICES;

const_assert SLICES == 8u;
const_assert MOST_SPLITS <= 8u * SLICES;
const_assert LANES >= 8u * SLICES;

var<workgroup> weights: array<f32, LANES>;
var<workgroup> shares: array<vec4<f32>, LANES>;

// Four columns of a split, or something else where there is none: its weight is zero.
fn sum_of(row: u32, split: u32, splits: u32, quad: u32) -> vec4<f32> {
    return sums[(row * MOST_SPLITS + min(split, splits - 1u)) * params.heads * QUADS + quad];
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let head = workgroup.y;
    let column = workgroup.x * HERE + lane % HERE;
    let quad = head * QUADS + min(column, QUADS - 1u);
    let slice = lane / HERE;
    let row = workgroup.z;
    let splits = splits_from(select(row, step.rows - 1u, params.last == 1u), params.window);

    var peak = vec2<f32>(-3.0e38, 0.0);
    if lane < splits { peak = peaks[(row * MOST_SPLITS + lane) * params.heads + head]; }
    let s0 = sum_of(row, slice, splits, quad);
    var s1 = vec4<f32>();
    var s2 = vec4<f32>();
    var s3 = vec4<f32>();
    var s4 = vec4<f32>();
    var s5 = vec4<f32>();
    var s6 = vec4<f32>();
    var s7 = vec4<f32>();
    if splits > SLICES {
        s1 = sum_of(row, slice + SLICES, splits, quad);
        s2 = sum_of(row, slice + 2u * SLICES, splits, quad);
        s3 = sum_of(row, slice + 3u * SLICES, splits, quad);
    }
    if splits > 4u * SLICES {
        s4 = sum_of(row, slice + 4u * SLICES, splits, quad);
        s5 = sum_of(row, slice + 5u * SLICES, splits, quad);
        s6 = sum_of(row, slice + 6u * SLICES, splits, quad);
        s7 = sum_of(row, slice + 7u * SLICES, splits, quad);
    }

    let most = workgroup_max(peak.x, lane);
    let weight = exp(peak.x - most);
    weights[lane] = weight;
    let total = workgroup_sum(peak.y * weight, lane);
    workgroupBarrier();
    let near = (weights[slice] * s0 + weights[slice + SLICES] * s1)
        + (weights[slice + 2u * SLICES] * s2 + weights[slice + 3u * SLICES] * s3);
    let far = (weights[slice + 4u * SLICES] * s4 + weights[slice + 5u * SLICES] * s5)
        + (weights[slice + 6u * SLICES] * s6 + weights[slice + 7u * SLICES] * s7);
    shares[lane] = near + far;
    workgroupBarrier();
    if lane < HERE && column < QUADS {
        let first = (shares[lane] + shares[lane + HERE]) + (shares[lane + 2u * HERE] + shares[lane + 3u * HERE]);
        let second = (shares[lane + 4u * HERE] + shares[lane + 5u * HERE])
            + (shares[lane + 6u * HERE] + shares[lane + 7u * HERE]);
        y[row * params.heads * QUADS + quad] = (first + second) / total;
    }
}
