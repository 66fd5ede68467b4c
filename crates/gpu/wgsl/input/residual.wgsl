// residual: what lies between two linear operations, computed by each reader for itself:
//
//     sum = (base + rms_norm(branch)) · scale        x = rms_norm(sum) · factor
//
// Every part but the base can be left out: BRANCH, SCALED and NORMED say what there is. BRANCH is how many vectors the
// branch is the sum of: more than one where its product was left in pieces. One workgroup keeps the sum for those who
// read it later, if the slot `keep` says so. Norm weights lie in `vectors`.

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

// Vectors of four values that a lane makes of x. Written out, because an array that a loop indexes would lie in memory;
// and everything is loaded at once, before the first sum over the workgroup is waited for.
const FOURS: u32 = (8u * CHUNKS + LANES - 1u) / LANES;

const_assert FOURS <= 8u && PIECE == CHUNKS;

// Whether all of x is staged before the first piece is asked for.
const STAGED_AHEAD: bool = true;

// The parts of one vector.
struct Parts { base: vec4<f32>, branch: vec4<f32>, branch_weight: vec4<f32>, weight: vec4<f32> }

fn parts_of(four: u32) -> Parts {
    var parts: Parts;
    if four < 8u * CHUNKS {
        parts.base = base[four];
        if BRANCH > 0u {
            parts.branch = branch[four];
            for (var piece = 1u; piece < BRANCH; piece++) { parts.branch += branch[piece * 8u * CHUNKS + four]; }
            parts.branch_weight = vectors[residual.branch_norm_at / 4u + four];
        }
        if NORMED == 1u { parts.weight = vectors[residual.norm_at / 4u + four]; }
    }
    return parts;
}

fn sum_of(parts: Parts, branch_scale: f32, scale: f32) -> vec4<f32> {
    return (parts.base + parts.branch * branch_scale * parts.branch_weight) * scale;
}

fn stage4(four: u32, value: vec4<f32>) { stage(0u, four, four < 8u * CHUNKS, value); }

fn keep4(four: u32, sum: vec4<f32>) {
    if four < 8u * CHUNKS { keep(four, sum); }
}

fn prepare(lane: u32, first_piece: u32, first_reader: bool) {
    let width = f32(32u * CHUNKS);
    let p0 = parts_of(lane);
    var p1: Parts;
    if FOURS > 1u { p1 = parts_of(lane + 1u * LANES); }
    var p2: Parts;
    if FOURS > 2u { p2 = parts_of(lane + 2u * LANES); }
    var p3: Parts;
    if FOURS > 3u { p3 = parts_of(lane + 3u * LANES); }
    var p4: Parts;
    if FOURS > 4u { p4 = parts_of(lane + 4u * LANES); }
    var p5: Parts;
    if FOURS > 5u { p5 = parts_of(lane + 5u * LANES); }
    var p6: Parts;
    if FOURS > 6u { p6 = parts_of(lane + 6u * LANES); }
    var p7: Parts;
    if FOURS > 7u { p7 = parts_of(lane + 7u * LANES); }
    var branch_scale = 0.0;
    if BRANCH > 0u {
        var squares = dot(p0.branch, p0.branch);
        if FOURS > 1u { squares += dot(p1.branch, p1.branch); }
        if FOURS > 2u { squares += dot(p2.branch, p2.branch); }
        if FOURS > 3u { squares += dot(p3.branch, p3.branch); }
        if FOURS > 4u { squares += dot(p4.branch, p4.branch); }
        if FOURS > 5u { squares += dot(p5.branch, p5.branch); }
        if FOURS > 6u { squares += dot(p6.branch, p6.branch); }
        if FOURS > 7u { squares += dot(p7.branch, p7.branch); }
        branch_scale = inverse_root(workgroup_sum(squares, lane) / width + residual.branch_eps);
    }
    var scale = 1.0;
    if SCALED == 1u { scale = vectors[residual.scale_at / 4u].x; }
    var x0 = sum_of(p0, branch_scale, scale);
    var x1: vec4<f32>;
    if FOURS > 1u { x1 = sum_of(p1, branch_scale, scale); }
    var x2: vec4<f32>;
    if FOURS > 2u { x2 = sum_of(p2, branch_scale, scale); }
    var x3: vec4<f32>;
    if FOURS > 3u { x3 = sum_of(p3, branch_scale, scale); }
    var x4: vec4<f32>;
    if FOURS > 4u { x4 = sum_of(p4, branch_scale, scale); }
    var x5: vec4<f32>;
    if FOURS > 5u { x5 = sum_of(p5, branch_scale, scale); }
    var x6: vec4<f32>;
    if FOURS > 6u { x6 = sum_of(p6, branch_scale, scale); }
    var x7: vec4<f32>;
    if FOURS > 7u { x7 = sum_of(p7, branch_scale, scale); }
    if KEPT && first_reader {
        keep4(lane, x0);
        if FOURS > 1u { keep4(lane + 1u * LANES, x1); }
        if FOURS > 2u { keep4(lane + 2u * LANES, x2); }
        if FOURS > 3u { keep4(lane + 3u * LANES, x3); }
        if FOURS > 4u { keep4(lane + 4u * LANES, x4); }
        if FOURS > 5u { keep4(lane + 5u * LANES, x5); }
        if FOURS > 6u { keep4(lane + 6u * LANES, x6); }
        if FOURS > 7u { keep4(lane + 7u * LANES, x7); }
    }
    if NORMED == 1u {
        var squares = dot(x0, x0);
        if FOURS > 1u { squares += dot(x1, x1); }
        if FOURS > 2u { squares += dot(x2, x2); }
        if FOURS > 3u { squares += dot(x3, x3); }
        if FOURS > 4u { squares += dot(x4, x4); }
        if FOURS > 5u { squares += dot(x5, x5); }
        if FOURS > 6u { squares += dot(x6, x6); }
        if FOURS > 7u { squares += dot(x7, x7); }
        let norm = inverse_root(workgroup_sum(squares, lane) / width + residual.eps) * residual.factor;
        x0 *= norm * p0.weight;
        if FOURS > 1u { x1 *= norm * p1.weight; }
        if FOURS > 2u { x2 *= norm * p2.weight; }
        if FOURS > 3u { x3 *= norm * p3.weight; }
        if FOURS > 4u { x4 *= norm * p4.weight; }
        if FOURS > 5u { x5 *= norm * p5.weight; }
        if FOURS > 6u { x6 *= norm * p6.weight; }
        if FOURS > 7u { x7 *= norm * p7.weight; }
    }
    stage4(lane, x0);
    if FOURS > 1u { stage4(lane + 1u * LANES, x1); }
    if FOURS > 2u { stage4(lane + 2u * LANES, x2); }
    if FOURS > 3u { stage4(lane + 3u * LANES, x3); }
    if FOURS > 4u { stage4(lane + 4u * LANES, x4); }
    if FOURS > 5u { stage4(lane + 5u * LANES, x5); }
    if FOURS > 6u { stage4(lane + 6u * LANES, x6); }
    if FOURS > 7u { stage4(lane + 7u * LANES, x7); }
    workgroupBarrier();
}

fn input4(row: u32, slot: u32, four: u32) -> vec4<f32> { return vec4<f32>(); }
