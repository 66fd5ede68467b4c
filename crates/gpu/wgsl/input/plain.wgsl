// plain: x as it is.

@group(1) @binding(3) var<storage, read> x: array<vec4<f32>>;

// Whether all of x is staged before the first piece is asked for.
const STAGED_AHEAD: bool = false;

fn prepare(lane: u32, first_piece: u32, first_reader: bool) {}

fn input4(row: u32, slot: u32, four: u32) -> vec4<f32> {
    return x[(params.x_at + row * params.x_stride + slot * params.expert_stride) / 4u + four];
}
