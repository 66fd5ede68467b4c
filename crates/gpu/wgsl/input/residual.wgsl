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

const FOURS: u32 = (8u * CHUNKS + LANES - 1u) / LANES;

// What a lane makes of x. Everything is loaded at once, before the first sum over the workgroup is waited for.
var<private> made: array<vec4<f32>, FOURS>;

fn prepare(lane: u32, first_reader: bool) {
    let width = f32(32u * CHUNKS);
    var branches: array<vec4<f32>, FOURS>;
    var branch_weights: array<vec4<f32>, FOURS>;
    var weights: array<vec4<f32>, FOURS>;
    var squares = 0.0;
    for (var i = 0u; i < FOURS; i++) {
        let four = lane + i * LANES;
        if four < 8u * CHUNKS {
            made[i] = base[four];
            if BRANCH == 1u {
                branches[i] = branch[four];
                branch_weights[i] = vectors[residual.branch_norm_at / 4u + four];
            }
            if NORMED == 1u { weights[i] = vectors[residual.norm_at / 4u + four]; }
        }
    }
    if BRANCH == 1u {
        for (var i = 0u; i < FOURS; i++) { squares += dot(branches[i], branches[i]); }
        let scale = inverseSqrt(workgroup_sum(squares, lane) / width + residual.branch_eps);
        for (var i = 0u; i < FOURS; i++) { made[i] += branches[i] * scale * branch_weights[i]; }
    }
    if SCALED == 1u {
        let scale = vectors[residual.scale_at / 4u].x;
        for (var i = 0u; i < FOURS; i++) { made[i] *= scale; }
    }
    if KEPT {
        for (var i = 0u; i < FOURS; i++) {
            let four = lane + i * LANES;
            if first_reader && four < 8u * CHUNKS { keep(four, made[i]); }
        }
    }
    if NORMED == 1u {
        squares = 0.0;
        for (var i = 0u; i < FOURS; i++) { squares += dot(made[i], made[i]); }
        let scale = inverseSqrt(workgroup_sum(squares, lane) / width + residual.eps) * residual.factor;
        for (var i = 0u; i < FOURS; i++) { made[i] *= scale * weights[i]; }
    }
}

fn input4(row: u32, slot: u32, four: u32, index: u32) -> vec4<f32> { return made[index]; }
