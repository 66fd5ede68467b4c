// plain: x as it is.

@group(1) @binding(3) var<storage, read> x: array<vec4<f32>>;

fn prepare(lane: u32, first_reader: bool) {}

fn input_values(row: u32, slot: u32, piece: u32, lane: u32) -> Values {
    let at = (params.x_at + row * params.x_stride + slot * params.x_slot) / 4u + 8u * (piece + lane / 2u) + lane % 2u;
    return Values(x[at], x[at + 2u], x[at + 4u], x[at + 6u]);
}
