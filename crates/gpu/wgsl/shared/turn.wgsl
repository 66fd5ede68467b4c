// turn: the weights of a head's norm, and its rotation. A quad is four columns of a head's first half, which rotate with those
// half a head further on.
//
// Constants    HEAD_WIDTH

const QUADS: u32 = HEAD_WIDTH / 4u;
const NO_WEIGHT: u32 = 0xffffffffu;

const_assert HEAD_WIDTH % 8u == 0u;

// Four weights of a norm.
fn weight4(at: u32, quad: u32) -> vec4<f32> {
    if at == NO_WEIGHT { return vec4<f32>(1.0); }
    let first = at + 4u * quad;
    return vec4<f32>(vectors[first], vectors[first + 1u], vectors[first + 2u], vectors[first + 3u]);
}

// Cosines of the angles of four columns of a row of the step, then their sines.
fn turn4(row: u32, quad: u32) -> mat2x4<f32> {
    let at = row * QUADS + 2u * quad;
    let first = angles[at];
    let second = angles[at + 1u];
    return mat2x4<f32>(vec4<f32>(first.xz, second.xz), vec4<f32>(first.yw, second.yw));
}
