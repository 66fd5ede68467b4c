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

fn kernel(workgroup: vec3<u32>, lane: u32) {
    let fours = params.width / 4u;
    let at = workgroup.y * fours;
    var branches: array<vec4<f32>, FOURS>;
    var squares = 0.0;
    for (var i = 0u; i < FOURS; i++) {
        let four = lane + i * LANES;
        if four < fours {
            var sum = branch[BRANCH * at + four];
            for (var split = 1u; split < BRANCH; split++) { sum += branch[BRANCH * at + split * fours + four]; }
            branches[i] = sum;
            squares += dot(branches[i], branches[i]);
        }
    }
    let branch_scale = inverse_root(workgroup_sum(squares, lane) / f32(params.width) + params.branch_eps);
    squares = 0.0;
    for (var i = 0u; i < FOURS; i++) {
        let four = lane + i * LANES;
        if four < fours {
            var sum = base[at + four] + branches[i] * branch_scale * vectors[params.branch_norm_at / 4u + four];
            if SCALED == 1u { sum *= vectors[params.scale_at / 4u].x; }
            y[at + four] = sum;
            branches[i] = sum;
            squares += dot(sum, sum);
        }
    }
    if NORMED {
        let scale = inverse_root(workgroup_sum(squares, lane) / f32(params.width) + params.eps);
        for (var i = 0u; i < FOURS; i++) {
            let four = lane + i * LANES;
            if four < fours { finish(at + four, branches[i] * scale * vectors[params.norm_at / 4u + four]); }
        }
    }
}
