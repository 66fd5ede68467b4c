// residual: what lies between two linear operations, computed by each reader for itself:
//
//     sum = (base + rms_norm(branch)) · scale        x = rms_norm(sum) · factor
//
// Every part but the base can be left out: BRANCH, SCALED and NORMED say what there is. One workgroup keeps the sum
// for those who read it later, if the slot `keep` says so. Norm weights lie in `vectors`.

struct Residual {
    norm_at: u32,           // of the norm of the sum
    branch_norm_at: u32,
    scale_at: u32,
    eps: f32,
    branch_eps: f32,
    factor: f32,
}

@group(1) @binding(3) var<storage, read> base: array<vec4<f32>>;
@group(1) @binding(4) var<storage, read> branch: array<vec4<f32>>;
@group(1) @binding(5) var<storage, read> vectors: array<vec4<f32>>;
@group(1) @binding(6) var<uniform> residual: Residual;

var<private> branch_scale: f32;
var<private> sum_scale: f32;
var<private> norm_scale: f32;

fn sum4(four: u32) -> vec4<f32> {
    var sum = base[four];
    if BRANCH == 1u { sum += branch[four] * branch_scale * vectors[residual.branch_norm_at / 4u + four]; }
    if SCALED == 1u { sum *= sum_scale; }
    return sum;
}

fn prepare(lane: u32) {
    let width = f32(32u * CHUNKS);
    if BRANCH == 1u {
        var squares = 0.0;
        for (var four = lane; four < 8u * CHUNKS; four += LANES) { squares += dot(branch[four], branch[four]); }
        branch_scale = inverseSqrt(workgroup_sum(squares, lane) / width + residual.branch_eps);
    }
    if SCALED == 1u { sum_scale = vectors[residual.scale_at / 4u].x; }
    if NORMED == 1u {
        var squares = 0.0;
        for (var four = lane; four < 8u * CHUNKS; four += LANES) {
            let sum = sum4(four);
            squares += dot(sum, sum);
        }
        norm_scale = inverseSqrt(workgroup_sum(squares, lane) / width + residual.eps) * residual.factor;
    }
}

fn input4(row: u32, slot: u32, four: u32, keeps: bool) -> vec4<f32> {
    let sum = sum4(four);
    if keeps { keep(four, sum); }
    if NORMED == 1u { return sum * norm_scale * vectors[residual.norm_at / 4u + four]; }
    return sum;
}
