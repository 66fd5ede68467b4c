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

// What a lane makes of each piece of x. Written out, because an array that a loop indexes would lie in memory; and
// everything is loaded at once, before the first sum over the workgroup is waited for.
const PIECES: u32 = (CHUNKS + PIECE - 1u) / PIECE;

const_assert PIECES <= 4u;

var<private> made0: Values;
var<private> made1: Values;
var<private> made2: Values;
var<private> made3: Values;

// The parts of what a lane makes.
struct Parts { base: Values, branch: Values, branch_weight: Values, weight: Values }

fn parts_of(piece: u32, lane: u32) -> Parts {
    var parts: Parts;
    let chunk = piece + lane / 2u;
    if lane / 2u < PIECE && chunk < CHUNKS {
        let at = 8u * chunk + lane % 2u;
        parts.base = Values(base[at], base[at + 2u], base[at + 4u], base[at + 6u]);
        if BRANCH == 1u {
            parts.branch = Values(branch[at], branch[at + 2u], branch[at + 4u], branch[at + 6u]);
            let w = residual.branch_norm_at / 4u + at;
            parts.branch_weight = Values(vectors[w], vectors[w + 2u], vectors[w + 4u], vectors[w + 6u]);
        }
        if NORMED == 1u {
            let w = residual.norm_at / 4u + at;
            parts.weight = Values(vectors[w], vectors[w + 2u], vectors[w + 4u], vectors[w + 6u]);
        }
    }
    return parts;
}

fn squares_of(values: Values) -> f32 {
    return dot(values.a, values.a) + dot(values.b, values.b) + dot(values.c, values.c) + dot(values.d, values.d);
}

fn scaled(values: Values, by: f32, weight: Values) -> Values {
    return Values(
        values.a * by * weight.a, values.b * by * weight.b, values.c * by * weight.c, values.d * by * weight.d);
}

fn sum_of(parts: Parts, branch_scale: f32, scale: f32) -> Values {
    let base = parts.base;
    if BRANCH == 0u { return Values(base.a * scale, base.b * scale, base.c * scale, base.d * scale); }
    let branch = scaled(parts.branch, branch_scale, parts.branch_weight);
    return Values(
        (base.a + branch.a) * scale, (base.b + branch.b) * scale,
        (base.c + branch.c) * scale, (base.d + branch.d) * scale);
}

fn keep_piece(piece: u32, lane: u32, values: Values) {
    let chunk = piece + lane / 2u;
    if lane / 2u < PIECE && chunk < CHUNKS {
        let at = 8u * chunk + lane % 2u;
        keep(at, values.a);
        keep(at + 2u, values.b);
        keep(at + 4u, values.c);
        keep(at + 6u, values.d);
    }
}

fn prepare(lane: u32, first_reader: bool) {
    let width = f32(32u * CHUNKS);
    let p0 = parts_of(0u, lane);
    var p1: Parts;
    if PIECES > 1u { p1 = parts_of(1u * PIECE, lane); }
    var p2: Parts;
    if PIECES > 2u { p2 = parts_of(2u * PIECE, lane); }
    var p3: Parts;
    if PIECES > 3u { p3 = parts_of(3u * PIECE, lane); }
    var branch_scale = 0.0;
    if BRANCH == 1u {
        var squares = squares_of(p0.branch);
        if PIECES > 1u { squares += squares_of(p1.branch); }
        if PIECES > 2u { squares += squares_of(p2.branch); }
        if PIECES > 3u { squares += squares_of(p3.branch); }
        branch_scale = inverseSqrt(workgroup_sum(squares, lane) / width + residual.branch_eps);
    }
    var scale = 1.0;
    if SCALED == 1u { scale = vectors[residual.scale_at / 4u].x; }
    made0 = sum_of(p0, branch_scale, scale);
    if PIECES > 1u { made1 = sum_of(p1, branch_scale, scale); }
    if PIECES > 2u { made2 = sum_of(p2, branch_scale, scale); }
    if PIECES > 3u { made3 = sum_of(p3, branch_scale, scale); }
    if KEPT && first_reader {
        keep_piece(0u, lane, made0);
        if PIECES > 1u { keep_piece(1u * PIECE, lane, made1); }
        if PIECES > 2u { keep_piece(2u * PIECE, lane, made2); }
        if PIECES > 3u { keep_piece(3u * PIECE, lane, made3); }
    }
    if NORMED == 1u {
        var squares = squares_of(made0);
        if PIECES > 1u { squares += squares_of(made1); }
        if PIECES > 2u { squares += squares_of(made2); }
        if PIECES > 3u { squares += squares_of(made3); }
        let norm = inverseSqrt(workgroup_sum(squares, lane) / width + residual.eps) * residual.factor;
        made0 = scaled(made0, norm, p0.weight);
        if PIECES > 1u { made1 = scaled(made1, norm, p1.weight); }
        if PIECES > 2u { made2 = scaled(made2, norm, p2.weight); }
        if PIECES > 3u { made3 = scaled(made3, norm, p3.weight); }
    }
}

fn input_values(row: u32, slot: u32, piece: u32, lane: u32) -> Values {
    if PIECES > 3u && piece == 3u * PIECE { return made3; }
    if PIECES > 2u && piece == 2u * PIECE { return made2; }
    if PIECES > 1u && piece == 1u * PIECE { return made1; }
    return made0;
}
