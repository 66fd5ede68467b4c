// residual: sum = (base + rms_norm(branch)) · scale for each row, and its norm if that is wanted too.
//
// Work split   one workgroup computes one row (y).
// Reads        base [rows, width], branch [rows, BRANCH, width], vectors
// Writes       y [rows, width]; what the slot writes
// Slots        normed: finish     reduce: workgroup_sum     entry
// Constants    LANES, BRANCH (vectors that the branch is the sum of), SCALED, FOURS (vectors of four values that a lane has
//              at most)

struct Params {
    width: u32,
    branch_norm_at: u32,
    scale_at: u32,
    norm_at: u32,
    branch_eps: f32,
    eps: f32,
}

@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(1) var<storage, read> base: array<vec4<f32>>;
@group(1) @binding(2) var<storage, read> branch: array<vec4<f32>>;
@group(1) @binding(3) var<storage, read> vectors: array<vec4<f32>>;
@group(1) @binding(4) var<storage, read_write> y: array<vec4<f32>>;

const MORE: u32 = max(FOURS, 3u) - 2u;

// What a lane has of one vector: everything is loaded before the first sum over the workgroup is waited for.
struct Parts { base: vec4<f32>, branch: vec4<f32>, branch_weight: vec4<f32>, weight: vec4<f32> }

fn parts_of(row: u32, four: u32) -> Parts {
    let fours = params.width / 4u;
    let at = row * fours;
    var parts: Parts;
    if four < fours {
        parts.base = base[at + four];
        parts.branch = branch[BRANCH * at + four];
        parts.branch_weight = vectors[params.branch_norm_at / 4u + four];
        if NORMED { parts.weight = vectors[params.norm_at / 4u + four]; }
        for (var split = 1u; split < BRANCH; split++) { parts.branch += branch[BRANCH * at + split * fours + four]; }
    }
    return parts;
}

fn sum_of(parts: Parts, branch_scale: f32, scale: f32) -> vec4<f32> {
    return (parts.base + parts.branch * branch_scale * parts.branch_weight) * scale;
}

fn put(row: u32, four: u32, sum: vec4<f32>) {
    let fours = params.width / 4u;
    if four < fours { y[row * fours + four] = sum; }
}

fn put_normed(row: u32, four: u32, value: vec4<f32>) {
    let fours = params.width / 4u;
    if four < fours { finish(row * fours + four, value); }
}

fn kernel(workgroup: vec3<u32>, lane: u32) {
    let row = workgroup.y;
    // The first two vectors have names, because an array that a loop indexes would lie in memory.
    let a = parts_of(row, lane);
    var b: Parts;
    if FOURS > 1u { b = parts_of(row, lane + LANES); }
    var others: array<Parts, MORE>;
    var squares = dot(a.branch, a.branch) + dot(b.branch, b.branch);
    for (var i = 2u; i < FOURS; i++) {
        others[i - 2u] = parts_of(row, lane + i * LANES);
        squares += dot(others[i - 2u].branch, others[i - 2u].branch);
    }
    var scale = 1.0;
    if SCALED == 1u { scale = vectors[params.scale_at / 4u].x; }
    let width = f32(params.width);
    let branch_scale = inverse_root(workgroup_sum(squares, lane) / width + params.branch_eps);

    let sum_a = sum_of(a, branch_scale, scale);
    let sum_b = sum_of(b, branch_scale, scale);
    put(row, lane, sum_a);
    if FOURS > 1u { put(row, lane + LANES, sum_b); }
    squares = dot(sum_a, sum_a) + dot(sum_b, sum_b);
    for (var i = 2u; i < FOURS; i++) {
        let sum = sum_of(others[i - 2u], branch_scale, scale);
        put(row, lane + i * LANES, sum);
        squares += dot(sum, sum);
    }
    if NORMED {
        let norm = inverse_root(workgroup_sum(squares, lane) / width + params.eps);
        put_normed(row, lane, sum_a * norm * a.weight);
        if FOURS > 1u { put_normed(row, lane + LANES, sum_b * norm * b.weight); }
        for (var i = 2u; i < FOURS; i++) {
            let sum = sum_of(others[i - 2u], branch_scale, scale);
            put_normed(row, lane + i * LANES, sum * norm * others[i - 2u].weight);
        }
    }
}
