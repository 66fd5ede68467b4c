// team: TEAM lanes norm and turn one head together. A lane has quads of four columns of the head's first half, and those
// half a head further on, with which they turn.
//
// Constants    LANES, TEAM, HEAD_WIDTH

const QUADS: u32 = HEAD_WIDTH / 4u;
const TEAM_QUADS: u32 = (QUADS / 2u + TEAM - 1u) / TEAM;
const NO_WEIGHT: u32 = 0xffffffffu;

const_assert HEAD_WIDTH % 8u == 0u;
const_assert LANES % TEAM == 0u;

var<workgroup> squares: array<f32, LANES>;

// What makes the mean square of a team's head one. Every lane must come here.
fn team_scale(square: f32, lane: u32, eps: f32) -> f32 {
    squares[lane] = square;
    workgroupBarrier();
    let first = lane / TEAM * TEAM;
    var total = 0.0;
    for (var i = 0u; i < TEAM; i++) { total += squares[first + i]; }
    return inverseSqrt(total / f32(HEAD_WIDTH) + eps);
}

// Four weights of a norm.
fn weight4(at: u32, quad: u32) -> vec4<f32> {
    if at == NO_WEIGHT { return vec4<f32>(1.0); }
    let first = at + 4u * quad;
    return vec4<f32>(vectors[first], vectors[first + 1u], vectors[first + 2u], vectors[first + 3u]);
}

// Cosines of the turns of four columns of a row of the step, then their sines.
fn turn4(row: u32, quad: u32) -> mat2x4<f32> {
    let at = row * QUADS + 2u * quad;
    let first = turns[at];
    let second = turns[at + 1u];
    return mat2x4<f32>(vec4<f32>(first.xz, second.xz), vec4<f32>(first.yw, second.yw));
}
