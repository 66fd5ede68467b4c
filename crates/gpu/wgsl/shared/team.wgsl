// team: TEAM lanes normalise and rotate one head together. A lane has quads of four columns of the head's first half, and those
// half a head further on, with which they rotate.
//
// Slots        turn: QUADS
// Constants    LANES, TEAM, HEAD_WIDTH

const TEAM_QUADS: u32 = (QUADS / 2u + TEAM - 1u) / TEAM;

const_assert LANES % TEAM == 0u;

var<workgroup> squares: array<f32, LANES>;

// What makes the mean square of a team's head one. Every lane must come here.
fn team_scale(square: f32, lane: u32, eps: f32) -> f32 {
    squares[lane] = square;
    workgroupBarrier();
    let first = lane / TEAM * TEAM;
    var total = 0.0;
    for (var i = 0u; i < TEAM; i++) { total += squares[first + i]; }
    return inverse_root(total / f32(HEAD_WIDTH) + eps);
}
